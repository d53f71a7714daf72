package keptn

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/keptn/go-utils/pkg/api/models"
	api "github.com/keptn/go-utils/pkg/api/utils/v2"
)

// examples are the two programs in examples-repo/executors, as what is typed to run them.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	folder, err := filepath.Abs("../../examples-repo/executors")
	must(t, err)
	built := filepath.Join(t.TempDir(), "executor")
	if told, err := exec.Command("go", "build", "-o", built, filepath.Join(folder, "executor.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	return map[string][]string{"Go": {built}, "Python": {"python3", filepath.Join(folder, "executor.py")}}
}

// example runs one of them for a task with a script, which has a folder for what it wants to be seen.
func example(t *testing.T, d *daemon, words []string, task, script, folder string, more ...string) *exec.Cmd {
	t.Helper()
	words = append(append(append([]string{}, words...), more...), "--task", task, "--", "sh", "-c", script)
	executor := exec.Command(words[0], words[1:]...)
	executor.Env = append(os.Environ(), "LAUNCHWAY_SERVER="+d.address, "LAUNCHWAY_TOKEN="+d.token)
	executor.Dir, executor.Stderr = folder, os.Stderr
	must(t, executor.Start())
	t.Cleanup(func() { _ = executor.Process.Kill() })
	return executor
}

func appears(t *testing.T, folder, name string) {
	t.Helper()
	until(t, name, func() bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

func TestAnExampleBeginsAnewAfterACrash(t *testing.T) {
	d := start(t)
	client := d.client(t)
	for language, words := range examples(t) {
		t.Run(language, func(t *testing.T) {
			service, folder := strings.ToLower(language), t.TempDir()
			keptnContext := trigger(t, client, "dev", "delivery", service)
			killed := example(t, d, words, "deploy", "touch begun; exec sleep 60", folder)
			appears(t, folder, "begun")
			must(t, killed.Process.Kill())
			_ = killed.Wait()
			again := example(t, d, words, "deploy", `cat > told; echo "token: $LAUNCHWAY_TOKEN" > token; echo to $STAGE; exit 3`, folder)
			until(t, "end", func() bool {
				found := states(t, d, "?keptnContext="+keptnContext)
				return len(found.States) == 1 && found.States[0].State == models.SequenceFinished
			})
			told, err := os.ReadFile(filepath.Join(folder, "token"))
			must(t, err)
			equal(t, "what the command is told", string(told), "token: \n")
			filter := api.EventFilter{Project: project, KeptnContext: keptnContext}
			events, problem := client.Events().GetEvents(background, &filter, api.EventsGetEventsOptions{})
			if problem != nil {
				t.Fatal(problem.GetMessage())
			}
			seen := map[string]int{}
			for _, event := range events {
				seen[strings.TrimPrefix(*event.Type, "sh.keptn.event.")]++
			}
			equal(t, "started and finished", []int{seen["deploy.started"], seen["deploy.finished"]}, []int{1, 1})
			equal(t, "message", events[0].Data.(map[string]any)["message"], "deploy: to dev")
			must(t, again.Process.Signal(syscall.SIGTERM))
			must(t, again.Wait())
		})
	}
}

func TestAnExampleEndsWhatIsToEnd(t *testing.T) {
	d := start(t)
	client := d.client(t)
	script := `trap "touch ended; exit 1" TERM; touch begun; while :; do sleep 0.1; done`
	for language, words := range examples(t) {
		t.Run(language, func(t *testing.T) {
			service, folder := strings.ToLower(language), t.TempDir()
			keptnContext := trigger(t, client, "dev", "delivery", service)
			executor := example(t, d, words, "deploy", script, folder)
			appears(t, folder, "begun")
			abort := api.SequenceControlParams{Project: project, KeptnContext: keptnContext, State: "abort"}
			must(t, client.Sequences().ControlSequence(background, abort, api.SequencesControlSequenceOptions{}))
			appears(t, folder, "ended")
			until(t, "end", func() bool {
				found := states(t, d, "?keptnContext="+keptnContext)
				return len(found.States) == 1 && found.States[0].State == models.SequenceAborted
			})

			must(t, os.Remove(filepath.Join(folder, "begun")))
			must(t, os.Remove(filepath.Join(folder, "ended")))
			trigger(t, client, "dev", "delivery", service)
			appears(t, folder, "begun")
			must(t, executor.Process.Signal(syscall.SIGTERM))
			must(t, executor.Wait())
			appears(t, folder, "ended")
			open(t, client, "deploy", "dev", service)
			must(t, client.Sequences().ControlSequence(background, api.SequenceControlParams{
				Project: project, KeptnContext: states(t, d, "?pageSize=1").States[0].Shkeptncontext, State: "abort",
			}, api.SequencesControlSequenceOptions{}))
		})
	}
}

func TestAnExampleSaysThatItIsStillAtIt(t *testing.T) {
	beats := map[string]string{"Go": "300ms", "Python": "0.3"}
	for language, words := range examples(t) {
		t.Run(language, func(t *testing.T) {
			d, folder := start(t), t.TempDir()
			// Without a word for two seconds it would be ended.
			keptnContext := trigger(t, d.client(t), "dev", "lab", "cart")
			script := `echo half of it; while [ ! -e over ]; do sleep 0.1; done`
			executor := example(t, d, words, "measure", script, folder, "--heartbeat", beats[language])
			until(t, "word for a while", func() bool { return len(reports(t, d)) >= 10 })
			equal(t, "word", reports(t, d)[9], "measure-executor: half of it")
			must(t, os.WriteFile(filepath.Join(folder, "over"), nil, 0o600))
			until(t, "end", func() bool {
				found := states(t, d, "?keptnContext="+keptnContext)
				return len(found.States) == 1 && found.States[0].State == models.SequenceFinished
			})
			equal(t, "stage", states(t, d, "?keptnContext="+keptnContext).States[0].Stages[0].State, "succeeded")
			must(t, executor.Process.Signal(syscall.SIGTERM))
			must(t, executor.Wait())
		})
	}
}

// reports are what executors have said of how far they are.
func reports(t *testing.T, d *daemon) (found []string) {
	t.Helper()
	answer, err := http.Get(d.address + "/api/v1/events?limit=1000")
	must(t, err)
	defer answer.Body.Close()
	var list struct {
		Items []struct{ Event, Message string }
	}
	must(t, json.NewDecoder(answer.Body).Decode(&list))
	for _, item := range list.Items {
		if item.Event == "executorReported" {
			found = append(found, item.Message)
		}
	}
	return found
}
