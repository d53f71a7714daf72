// Does every task of one name that launchway leaves to executors, one after the other, by running a command.
//
//	go run executor.go --task test -- ./run-tests
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	largestAnswer = 4 << 20
	mostPages     = 50
	keptOutput    = 2000 // bytes; the data of a whole sequence may have 64 KiB
	longestPause  = 30 * time.Second
	grace         = 10 * time.Second // between asking a command to end and ending it
)

type event struct {
	SpecVersion string         `json:"specversion"`
	ID          string         `json:"id"`
	Source      string         `json:"source"`
	Type        string         `json:"type"`
	Context     string         `json:"shkeptncontext,omitempty"`
	TriggeredID string         `json:"triggeredid,omitempty"`
	Commit      string         `json:"gitcommitid,omitempty"`
	Data        map[string]any `json:"data"`
}

func (e event) text(key string) string {
	text, _ := e.Data[key].(string)
	return text
}

// refused says that the server has answered, and will answer the same again.
type refused struct {
	status int
	told   string
}

func (r refused) Error() string { return fmt.Sprintf("%d: %s", r.status, r.told) }

func (r refused) isAboutAccess() bool { return r.status == 401 || r.status == 403 }

type server struct{ address, token string }

// ask asks once. Any error but refused may go away by itself.
func (s server) ask(ctx context.Context, path string, parameters url.Values, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	method, sent := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(s.address, "/")+path+"?"+parameters.Encode(), bytes.NewReader(sent))
	if err != nil {
		return err
	}
	request.Header.Set("content-type", "application/json")
	if s.token != "" {
		request.Header.Set("authorization", "Bearer "+s.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	told, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	switch status := response.StatusCode; {
	case err != nil:
		return err
	case status >= 500 || status == 408 || status == 429:
		return fmt.Errorf("%d: %s", status, told)
	case status >= 400:
		return refused{status, string(told)}
	}
	return json.Unmarshal(told, answer)
}

// events has all pages, as far as they are bounded here.
func (s server) events(ctx context.Context, path string, parameters url.Values) ([]event, error) {
	var found []event
	parameters.Set("pageSize", "20")
	for range mostPages {
		var page struct {
			Events      []event `json:"events"`
			NextPageKey string  `json:"nextPageKey"`
		}
		if err := s.ask(ctx, path, parameters, nil, &page); err != nil {
			return nil, err
		}
		found = append(found, page.Events...)
		if page.NextPageKey == "" || page.NextPageKey == "0" {
			break
		}
		parameters.Set("nextPageKey", page.NextPageKey)
	}
	return found, nil
}

// patiently asks until there is an answer, or this program is to end.
func patiently(ctx context.Context, ask func() error) error {
	for pause := time.Second; ; pause = min(2*pause, longestPause) {
		err := ask()
		if err == nil || errors.As(err, &refused{}) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log.Printf("no answer, asks again in %s: %v", pause, err)
		wait(ctx, pause)
	}
}

func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

type executor struct {
	server        server
	task, name    string
	poll, timeout time.Duration
	heartbeat     time.Duration // 0: says nothing
	count         int
	command       []string
	done          map[string]bool // what is open although it is done here: others have not finished it
}

func (e *executor) open(ctx context.Context) ([]event, error) {
	return e.server.events(ctx, "/api/controlPlane/v1/event/triggered/sh.keptn.event."+e.task+".triggered", url.Values{})
}

func (e *executor) run(ctx context.Context) error {
	for taken := 0; ctx.Err() == nil; wait(ctx, e.poll) {
		var events []event
		err := patiently(ctx, func() (err error) { events, err = e.open(ctx); return })
		before := e.done
		e.done = map[string]bool{}
		for _, task := range events {
			if err == nil && !before[task.ID] {
				err = e.take(ctx, task)
				taken++
			}
			var no refused
			if errors.As(err, &no) && !no.isAboutAccess() {
				log.Printf("%s is refused: %v", task.ID, err)
				err = nil
			}
			e.done[task.ID] = err == nil
			if err == nil && taken > 0 && taken == e.count {
				return nil
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// take does a task. Whatever is sent again after a crash is the same by its id, and changes nothing.
func (e *executor) take(ctx context.Context, task event) error {
	if told, err := e.wasTold(ctx, task, "finished"); told || err != nil {
		return err
	}
	if err := e.tell(ctx, task, "started", nil); err != nil {
		return err
	}
	outcome, err := e.do(ctx, task)
	if err != nil { // this program is to end, and begins the task anew after its next start
		return err
	}
	return e.tell(ctx, task, "finished", outcome)
}

func (e *executor) id(task event, word string) string { return task.ID + "." + e.name + "." + word }

func (e *executor) wasTold(ctx context.Context, task event, word string) (bool, error) {
	var found []event
	err := patiently(ctx, func() (err error) {
		parameters := url.Values{"keptnContext": {task.Context}, "eventID": {e.id(task, word)}}
		found, err = e.server.events(ctx, "/api/v1/event", parameters)
		return
	})
	return len(found) > 0, err
}

func (e *executor) tell(ctx context.Context, task event, word string, data map[string]any) error {
	var ignored string
	err := patiently(ctx, func() (err error) {
		ignored, err = e.tellOnce(ctx, task, word, e.id(task, word), data)
		return
	})
	if err == nil {
		log.Println(task.ID, word, ignored)
	}
	return err
}

func (e *executor) tellOnce(ctx context.Context, task event, word, id string, data map[string]any) (string, error) {
	told := map[string]any{}
	for key, value := range data {
		told[key] = value
	}
	for _, key := range []string{"project", "stage", "service"} {
		told[key] = task.Data[key]
	}
	var answer struct {
		Ignored string `json:"ignored"`
	}
	return answer.Ignored, e.server.ask(ctx, "/api/v1/event", nil, event{
		SpecVersion: "1.0", ID: id, Source: e.name, Type: "sh.keptn.event." + e.task + "." + word,
		Context: task.Context, TriggeredID: task.ID, Data: told,
	}, &answer)
}

// report says that it is still at it. The next time is soon, so that nobody has to hear of this one.
func (e *executor) report(ctx context.Context, task event, output string) {
	message := lastLine(output)
	if message == "" {
		message = "at work"
	}
	// Each has an id of its own, also after a restart: one that was sent before would not count.
	id := e.id(task, fmt.Sprintf("status.changed-%d", time.Now().UnixNano()))
	if _, err := e.tellOnce(ctx, task, "status.changed", id, map[string]any{"message": message}); err != nil {
		log.Printf("%s status.changed is not told: %v", task.ID, err)
	}
}

func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return lines[len(lines)-1]
}

// do runs the command, and says how it went.
func (e *executor) do(ctx context.Context, task event) (map[string]any, error) {
	told, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	begun, output := time.Now(), &tail{}
	command := exec.Command(e.command[0], e.command[1:]...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(told), output, output
	command.Env = surroundings(task)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = grace // what it has left behind may hold its output open
	if err := command.Start(); err != nil {
		return failure("errored", err.Error()), nil
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	heartbeat, reported := e.heartbeat, begun
	if heartbeat == 0 {
		heartbeat = e.timeout
	}
	for {
		select {
		case <-ended:
			return e.result(command.ProcessState.ExitCode(), output.text(), time.Since(begun)), nil
		case <-ctx.Done():
			end(command, ended)
			return nil, ctx.Err()
		case <-time.After(min(e.poll, heartbeat)):
		}
		if time.Since(reported) >= heartbeat {
			reported = time.Now()
			e.report(ctx, task, output.text())
		}
		switch {
		case time.Since(begun) > e.timeout:
			end(command, ended)
			return failure("errored", fmt.Sprintf("not done after %s", e.timeout)), nil
		case !e.isWanted(ctx, task):
			end(command, ended)
			return failure("aborted", "ended, because the task is to end"), nil
		}
	}
}

func (e *executor) result(code int, output string, took time.Duration) map[string]any {
	message, result := lastLine(output), "pass"
	if message == "" {
		message = fmt.Sprintf("exit code %d", code)
	}
	if code != 0 {
		result = "fail"
	}
	told := map[string]any{"exitCode": code, "seconds": took.Round(100 * time.Millisecond).Seconds(), "output": output}
	return map[string]any{"status": "succeeded", "result": result, "message": message, e.task: told}
}

func failure(status, message string) map[string]any {
	return map[string]any{"status": status, "result": "fail", "message": message}
}

// isWanted says whether a task is still to be done, as far as is known.
func (e *executor) isWanted(ctx context.Context, task event) bool {
	events, err := e.open(ctx)
	for _, it := range events {
		if it.ID == task.ID {
			return true
		}
	}
	return err != nil
}

func surroundings(task event) []string {
	var found []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LAUNCHWAY_TOKEN=") {
			found = append(found, pair)
		}
	}
	return append(found, "PROJECT="+task.text("project"), "STAGE="+task.text("stage"), "SERVICE="+task.text("service"), "COMMIT="+task.Commit)
}

// end ends a command with all that it has started.
func end(command *exec.Cmd, ended <-chan error) {
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-ended
	}
}

// tail shows what is printed, and keeps the end of it.
type tail struct {
	lock sync.Mutex
	kept []byte
}

func (t *tail) text() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return string(t.kept)
}

func (t *tail) Write(printed []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.kept = append(t.kept, printed...)
	t.kept = t.kept[max(0, len(t.kept)-keptOutput):]
	return os.Stdout.Write(printed)
}

func main() {
	log.SetFlags(0)
	address, isSet := os.LookupEnv("LAUNCHWAY_SERVER")
	if !isSet {
		address = "http://127.0.0.1:8787"
	}
	e := executor{done: map[string]bool{}}
	flag.StringVar(&e.server.address, "server", address, "where launchway listens; the token is in LAUNCHWAY_TOKEN")
	flag.StringVar(&e.task, "task", "", "the `name` of the tasks that it does")
	flag.StringVar(&e.name, "name", "", "what it calls itself; two that do the same tasks have two `names` (default TASK-executor)")
	flag.DurationVar(&e.poll, "poll", 2*time.Second, "time between two looks")
	flag.DurationVar(&e.timeout, "timeout", 10*time.Minute, "the most that the command may take")
	flag.DurationVar(&e.heartbeat, "heartbeat", 0, "time between two words of how far it is; less than the `heartbeat` of the task (default says nothing)")
	flag.IntVar(&e.count, "count", 0, "ends after so many tasks (default never)")
	flag.Parse()
	e.server.token, e.command = os.Getenv("LAUNCHWAY_TOKEN"), flag.Args()
	if e.task == "" || len(e.command) == 0 {
		fmt.Fprintln(os.Stderr, "usage: executor --task NAME [flags] -- COMMAND…")
		flag.PrintDefaults()
		os.Exit(2)
	}
	if e.name == "" {
		e.name = e.task + "-executor"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := e.run(ctx); err != nil {
		log.Fatalf("refused: %v", err)
	}
}
