package keptn

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/benbjohnson/clock"
	"github.com/keptn/go-utils/pkg/api/models"
	v1 "github.com/keptn/go-utils/pkg/api/utils"
	api "github.com/keptn/go-utils/pkg/api/utils/v2"
	keptnv2 "github.com/keptn/go-utils/pkg/lib/v0_2_0"
	"github.com/keptn/go-utils/pkg/sdk/connector/controlplane"
	eventsource "github.com/keptn/go-utils/pkg/sdk/connector/eventsource/http"
	"github.com/keptn/go-utils/pkg/sdk/connector/subscriptionsource"
	"github.com/keptn/go-utils/pkg/sdk/connector/types"
)

// sdk runs the program in executor/ as it would run beside a Keptn, until the test has ended.
func sdk(t *testing.T, d *daemon) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "executor")
	if told, err := exec.Command("go", "build", "-o", program, "./executor").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	executor := exec.Command(program)
	executor.Env = append(os.Environ(), "KEPTN_API_ENDPOINT="+d.endpoint(), "KEPTN_API_TOKEN="+d.token,
		"PUBSUB_TOPIC="+keptnv2.GetTriggeredEventType("deploy"), "HEALTH_ENDPOINT_ENABLED=false")
	executor.Stdout, executor.Stderr = os.Stderr, os.Stderr
	must(t, executor.Start())
	t.Cleanup(func() {
		_ = executor.Process.Signal(os.Interrupt)
		_ = executor.Wait()
	})
}

func TestAnExecutorOfTheSdkDoesItsTask(t *testing.T) {
	d := start(t)
	client := d.client(t)
	sdk(t, d)

	trigger(t, client, "dev", "delivery", "cart")
	tested := open(t, client, "test", "dev", "cart")
	var told struct{ Deploy struct{ URI string } }
	must(t, tested.DataAs(&told))
	equal(t, "what the executor has left", told.Deploy.URI, "http://cart.dev")
	if data, ok := tested.Data.(map[string]any); ok && data["temporaryData"] != nil {
		t.Errorf("what the SDK keeps for itself goes on: %v", data["temporaryData"])
	}

	event, err := keptnv2.KeptnEvent("sh.keptn.event.dev.delivery.triggered", "test", keptnv2.EventData{
		Project: project, Stage: "dev", Service: "web", Labels: map[string]string{"outcome": "errored"}}).Build()
	must(t, err)
	keptnContext := send(t, client, event)
	until(t, "failure", func() bool {
		found := states(t, d, "?keptnContext="+keptnContext)
		return len(found.States) == 1 && found.States[0].State == models.SequenceFinished
	})
	filter := api.EventFilter{Project: project, KeptnContext: keptnContext, EventType: "sh.keptn.event.dev.delivery.finished"}
	ended, problem := client.Events().GetEvents(background, &filter, api.EventsGetEventsOptions{})
	if problem != nil || len(ended) != 1 {
		t.Fatalf("%v %v", ended, problem)
	}
	var end keptnv2.EventData
	must(t, ended[0].DataAs(&end))
	equal(t, "end", []any{end.Status, end.Result, end.Message}, []any{keptnv2.StatusErrored, keptnv2.ResultFailed, "deploy: no room left"})
}

// It has registered once, and knows nothing of another daemon.
func TestAnExecutorOfTheSdkOutlivesTheDaemon(t *testing.T) {
	d := start(t)
	client := d.client(t)
	sdk(t, d)
	trigger(t, client, "dev", "delivery", "cart")
	open(t, client, "test", "dev", "cart")
	d.stop()
	d.run(t, strings.TrimPrefix(d.address, "http://"))
	trigger(t, client, "dev", "delivery", "web")
	open(t, client, "test", "dev", "web")
}

type connected struct{ done sync.Map }

func (c *connected) RegistrationData() types.RegistrationData {
	return types.RegistrationData{Name: "connected"}
}

func (c *connected) OnEvent(ctx context.Context, event models.KeptnContextExtendedCE) error {
	if _, again := c.done.LoadOrStore(event.ID, true); again {
		return nil
	}
	tell := ctx.Value(types.EventSenderKey).(types.EventSender)
	started, err := keptnv2.CreateStartedEvent("connected", event, nil)
	if err == nil {
		err = tell(*started)
	}
	if err != nil {
		return err
	}
	finished, err := keptnv2.CreateFinishedEvent("connected", event, event.Data)
	if err != nil {
		return err
	}
	return tell(*finished)
}

// Whoever uses the SDK's connector alone says in the program what it wants to hear.
func TestAnExecutorOfTheConnectorDoesItsTask(t *testing.T) {
	d := start(t)
	client := d.client(t)
	calls, err := v1.New(d.endpoint(), v1.WithAuthToken(d.token))
	must(t, err)
	wanted := subscriptionsource.WithFixedSubscriptions(models.EventSubscription{ID: "deploy", Event: keptnv2.GetTriggeredEventType("deploy")})
	events := eventsource.New(clock.New(), eventsource.NewEventAPI(calls.ShipyardControlV1(), calls.APIV1()))
	executor := controlplane.New(subscriptionsource.NewFixedSubscriptionSource(wanted), events, nil)
	ctx, stop := context.WithCancel(background)
	ended := make(chan error, 1)
	go func() { ended <- executor.Register(ctx, &connected{}) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})

	trigger(t, client, "dev", "delivery", "cart")
	pass(t, client, open(t, client, "test", "dev", "cart"))
	filter := api.EventFilter{Project: project, EventType: "sh.keptn.event.production.delivery.finished"}
	until(t, "end in production", func() bool {
		found, problem := client.Events().GetEvents(background, &filter, api.EventsGetEventsOptions{})
		if problem != nil {
			t.Fatal(problem.GetMessage())
		}
		return len(found) == 1
	})
}
