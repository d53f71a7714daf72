package keptn

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	api "github.com/keptn/go-utils/pkg/api/utils/v2"
)

// How long something may take that is under way; long, because machines that run tests are busy.
const patience = 60 * time.Second

const project = "shop"

const shipyard = `apiVersion: spec.keptn.sh/0.2.2
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      tasks:
      - name: deploy
        properties: {strategy: direct}
      - name: test
    - name: check
      tasks: [{name: approval}]
    - name: lab
      tasks: [{name: measure, heartbeat: 2s}]
  - name: production
    sequences:
    - name: delivery
      triggeredOn: [{event: dev.delivery.finished}]
      tasks: [{name: deploy}]
`

// daemon is a launchway that watches a repository of one shipyard.
type daemon struct {
	address, token string
	folder         string
	up             *exec.Cmd
}

var listening = regexp.MustCompile(`serving (http://[0-9.:]+)`)

// start runs the program that LAUNCHWAY names, until the test has ended.
func start(t *testing.T) *daemon {
	t.Helper()
	if os.Getenv("LAUNCHWAY") == "" {
		t.Fatal("LAUNCHWAY names no program: begin with ./run")
	}
	d := &daemon{folder: t.TempDir()}
	commit(t, filepath.Join(d.folder, project))
	t.Cleanup(d.stop)
	d.run(t, "127.0.0.1:0")
	return d
}

func (d *daemon) stop() {
	_ = d.up.Process.Signal(os.Interrupt)
	_ = d.up.Wait()
}

// run waits until it can be used.
func (d *daemon) run(t *testing.T, listen string) {
	t.Helper()
	state := filepath.Join(d.folder, "state")
	d.up = exec.Command(os.Getenv("LAUNCHWAY"), "up", filepath.Join(d.folder, project), "--state", state, "--listen", listen)
	output, err := d.up.StdoutPipe()
	must(t, err)
	d.up.Stderr = os.Stderr
	must(t, d.up.Start())
	address := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
	}()
	select {
	case d.address = <-address:
	case <-time.After(patience):
		t.Fatal("the daemon does not say where it listens")
	}
	token, err := os.ReadFile(filepath.Join(state, "operator-token"))
	must(t, err)
	d.token = strings.TrimSpace(string(token))
	until(t, "revision", func() bool { return isReady(d.address) })
}

// isReady says whether the repository has been read.
func isReady(address string) bool {
	answer, err := http.Get(address + "/readyz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func commit(t *testing.T, repository string) {
	t.Helper()
	must(t, os.MkdirAll(repository, 0o755))
	must(t, os.WriteFile(filepath.Join(repository, "shipyard.yaml"), []byte(shipyard), 0o644))
	for _, words := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "--message=Say how"},
	} {
		git := exec.Command("git", words...)
		git.Dir = repository
		if told, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", words, err, told)
		}
	}
}

func (d *daemon) endpoint() string { return d.address + "/api" }

func (d *daemon) client(t *testing.T) *api.APISet {
	t.Helper()
	client, err := api.New(d.endpoint(), api.WithAuthToken(d.token))
	must(t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for something that comes by itself.
func until(t *testing.T, what string, isThere func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !isThere(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there is no %s", what)
		}
	}
}

func equal(t *testing.T, what string, seen, wanted any) {
	t.Helper()
	if fmt.Sprint(seen) != fmt.Sprint(wanted) {
		t.Errorf("%s: %v, not %v", what, seen, wanted)
	}
}
