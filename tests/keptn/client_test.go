package keptn

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/keptn/go-utils/pkg/api/models"
	api "github.com/keptn/go-utils/pkg/api/utils/v2"
	keptnv2 "github.com/keptn/go-utils/pkg/lib/v0_2_0"
)

var background = context.Background()

func data(stage, service string) keptnv2.EventData {
	return keptnv2.EventData{Project: project, Stage: stage, Service: service, Labels: map[string]string{"build": "17"}}
}

// send tells an event and returns its context.
func send(t *testing.T, client *api.APISet, event models.KeptnContextExtendedCE) string {
	t.Helper()
	answer, problem := client.API().SendEvent(background, event, api.APISendEventOptions{})
	if problem != nil {
		t.Fatalf("%s is refused: %q", *event.Type, problem.GetMessage())
	}
	if answer == nil || answer.KeptnContext == nil || *answer.KeptnContext == "" {
		t.Fatalf("%s is answered without a context", *event.Type)
	}
	return *answer.KeptnContext
}

func trigger(t *testing.T, client *api.APISet, stage, sequence, service string) string {
	t.Helper()
	kind := "sh.keptn.event." + stage + "." + sequence + ".triggered"
	event, err := keptnv2.KeptnEvent(kind, "test", data(stage, service)).Build()
	must(t, err)
	return send(t, client, event)
}

// open waits for a task that executors may take.
func open(t *testing.T, client *api.APISet, task, stage, service string) models.KeptnContextExtendedCE {
	t.Helper()
	filter := api.EventFilter{EventType: keptnv2.GetTriggeredEventType(task), Project: project, Stage: stage, Service: service}
	var found []*models.KeptnContextExtendedCE
	until(t, "open "+task, func() bool {
		var err error
		found, err = client.ShipyardControl().GetOpenTriggeredEvents(background, filter, api.ShipyardControlGetOpenTriggeredEventsOptions{})
		must(t, err)
		return len(found) > 0
	})
	equal(t, "open "+task, len(found), 1)
	must(t, found[0].Validate())
	return *found[0]
}

// pass does a task that is open.
func pass(t *testing.T, client *api.APISet, triggered models.KeptnContextExtendedCE) {
	t.Helper()
	started, err := keptnv2.CreateStartedEvent("test", triggered, nil)
	must(t, err)
	send(t, client, *started)
	finished, err := keptnv2.CreateFinishedEvent("test", triggered, triggered.Data)
	must(t, err)
	send(t, client, *finished)
}

// states are read as Keptn's own command and page read them; its library has their shapes and no call.
func states(t *testing.T, d *daemon, parameters string) models.SequenceStates {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, d.endpoint()+"/controlPlane/v1/sequence/"+project+parameters, nil)
	must(t, err)
	request.Header.Set("x-token", d.token)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	equal(t, "status", answer.StatusCode, http.StatusOK)
	var found models.SequenceStates
	must(t, json.NewDecoder(answer.Body).Decode(&found))
	return found
}

func TestASequenceIsTriggeredDoneAndReadBack(t *testing.T) {
	d := start(t)
	client := d.client(t)
	keptnContext := trigger(t, client, "dev", "delivery", "cart")

	deploy := open(t, client, "deploy", "dev", "cart")
	equal(t, "context", deploy.Shkeptncontext, keptnContext)
	var told struct {
		keptnv2.EventData
		Deploy struct{ Strategy string }
	}
	must(t, deploy.DataAs(&told))
	equal(t, "told", told.EventData, data("dev", "cart"))
	equal(t, "properties", told.Deploy.Strategy, "direct")
	pass(t, client, deploy)
	pass(t, client, open(t, client, "test", "dev", "cart"))
	pass(t, client, open(t, client, "deploy", "production", "cart"))
	until(t, "end", func() bool {
		found := states(t, d, "?keptnContext="+keptnContext)
		return len(found.States) == 1 && found.States[0].State == models.SequenceFinished
	})

	state := states(t, d, "?pageSize=1").States[0]
	equal(t, "state", []string{state.Name, state.Service, state.Project, state.Shkeptncontext}, []string{"delivery", "cart", project, keptnContext})
	equal(t, "stages", len(state.Stages), 2)
	equal(t, "last event", state.Stages[1].LatestEvent.Type, "sh.keptn.event.production.delivery.finished")

	filter := api.EventFilter{Project: project, KeptnContext: keptnContext, PageSize: "3"}
	events, problem := client.Events().GetEvents(background, &filter, api.EventsGetEventsOptions{})
	if problem != nil {
		t.Fatal(problem.GetMessage())
	}
	// Two sequences of three events each, and three tasks of three.
	equal(t, "events", len(events), 15)
	seen := map[string]bool{}
	for _, event := range events {
		must(t, event.Validate())
		if seen[event.ID] {
			t.Errorf("%s is on two pages", event.ID)
		}
		seen[event.ID] = true
	}
	filter = api.EventFilter{Project: project, EventType: keptnv2.GetFinishedEventType("test"), KeptnContext: keptnContext}
	finished, err := client.Events().GetEventsWithRetry(background, &filter, 1, time.Second, api.EventsGetEventsWithRetryOptions{})
	must(t, err)
	equal(t, "finished tests", len(finished), 1)
	equal(t, "source", *finished[0].Source, "test")
	filter = api.EventFilter{Project: project, KeptnContext: keptnContext, FromTime: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	later, problem := client.Events().GetEvents(background, &filter, api.EventsGetEventsOptions{})
	if problem != nil {
		t.Fatal(problem.GetMessage())
	}
	equal(t, "events of the future", len(later), 0)
}

func TestEventsAreReadFromATimeOn(t *testing.T) {
	d := start(t)
	client := d.client(t)
	keptnContext := trigger(t, client, "dev", "delivery", "cart")
	begun := open(t, client, "deploy", "dev", "cart").Time
	for _, from := range []string{
		begun.UTC().Truncate(time.Second).Format(time.RFC3339),
		begun.In(time.FixedZone("", 3600)).Add(-time.Second).Format(time.RFC3339Nano),
	} {
		filter := api.EventFilter{Project: project, KeptnContext: keptnContext, FromTime: from}
		found, problem := client.Events().GetEvents(background, &filter, api.EventsGetEventsOptions{})
		if problem != nil {
			t.Fatal(problem.GetMessage())
		}
		equal(t, "events from "+from+" on, of "+begun.String(), len(found), 3)
	}
}

// Whoever waits for the end of a task from outside finds what it has told, and what it was told.
func TestWhatWasToldIsReadBack(t *testing.T) {
	d := start(t)
	client := d.client(t)
	keptnContext := trigger(t, client, "dev", "delivery", "cart")
	for _, task := range []string{"deploy", "test"} {
		triggered := open(t, client, task, "dev", "cart")
		started, err := keptnv2.CreateStartedEvent("test", triggered, nil)
		must(t, err)
		send(t, client, *started)
		finished, err := keptnv2.CreateFinishedEvent("test", triggered, map[string]any{
			"project": project, "stage": "dev", "service": "cart", task: map[string]any{"by": task},
		})
		must(t, err)
		send(t, client, *finished)
	}
	read := func(kind string) map[string]any {
		filter := api.EventFilter{Project: project, Stage: "dev", KeptnContext: keptnContext, EventType: kind}
		found, err := client.Events().GetEventsWithRetry(background, &filter, 1, time.Second, api.EventsGetEventsWithRetryOptions{})
		must(t, err)
		equal(t, kind, len(found), 1)
		return found[0].Data.(map[string]any)
	}
	equal(t, "told by deploy", read(keptnv2.GetFinishedEventType("deploy"))["deploy"], map[string]any{"by": "deploy"})
	told := read(keptnv2.GetTriggeredEventType("deploy"))
	equal(t, "told to deploy", told["deploy"], map[string]any{"strategy": "direct"})
	if told["test"] != nil {
		t.Errorf("deploy was told what test has left: %v", told["test"])
	}
}

func TestAnEventToldTwiceCountsOnce(t *testing.T) {
	client := start(t).client(t)
	event, err := keptnv2.KeptnEvent("sh.keptn.event.dev.delivery.triggered", "test", data("dev", "cart")).Build()
	must(t, err)
	equal(t, "context", send(t, client, event), send(t, client, event))
	open(t, client, "deploy", "dev", "cart")
}

func TestAnEventNeedsNoIdAndNoVersion(t *testing.T) {
	client := start(t).client(t)
	event, err := keptnv2.KeptnEvent("sh.keptn.event.dev.delivery.triggered", "test", data("dev", "cart")).Build()
	must(t, err)
	event.ID, event.Specversion, event.Time = "", "", time.Time{}
	send(t, client, event)
	open(t, client, "deploy", "dev", "cart")
}

func TestASequenceIsAborted(t *testing.T) {
	d := start(t)
	client := d.client(t)
	keptnContext := trigger(t, client, "dev", "delivery", "cart")
	open(t, client, "deploy", "dev", "cart")
	abort := api.SequenceControlParams{Project: project, KeptnContext: keptnContext, State: "abort"}
	must(t, client.Sequences().ControlSequence(background, abort, api.SequencesControlSequenceOptions{}))
	until(t, "abort", func() bool {
		found := states(t, d, "?state="+models.SequenceAborted)
		return len(found.States) == 1 && found.States[0].Shkeptncontext == keptnContext
	})
	abort.State = "pause"
	if err := client.Sequences().ControlSequence(background, abort, api.SequencesControlSequenceOptions{}); err == nil || err.Error() == "" {
		t.Errorf("that nothing of it is left to be paused is told as %q", err)
	}
	abort.State, abort.KeptnContext = "abort", "no such context"
	if err := client.Sequences().ControlSequence(background, abort, api.SequencesControlSequenceOptions{}); err == nil || err.Error() == "" {
		t.Errorf("that there is no such sequence is told as %q", err)
	}
}

func TestASequenceIsPausedAndResumed(t *testing.T) {
	d := start(t)
	client := d.client(t)
	keptnContext := trigger(t, client, "dev", "delivery", "cart")
	deploy := open(t, client, "deploy", "dev", "cart")
	control := api.SequenceControlParams{Project: project, KeptnContext: keptnContext, State: "pause"}
	must(t, client.Sequences().ControlSequence(background, control, api.SequencesControlSequenceOptions{}))
	equal(t, "state", states(t, d, "").States[0].State, models.SequencePaused)
	pass(t, client, deploy)
	equal(t, "state after the task", states(t, d, "").States[0].State, models.SequencePaused)
	filter := api.EventFilter{EventType: keptnv2.GetTriggeredEventType("test"), Project: project}
	found, err := client.ShipyardControl().GetOpenTriggeredEvents(background, filter, api.ShipyardControlGetOpenTriggeredEventsOptions{})
	must(t, err)
	equal(t, "open tests", len(found), 0)
	control.State = "resume"
	must(t, client.Sequences().ControlSequence(background, control, api.SequencesControlSequenceOptions{}))
	open(t, client, "test", "dev", "cart")
}

func TestAnApprovalIsGiven(t *testing.T) {
	d := start(t)
	client := d.client(t)
	keptnContext := trigger(t, client, "dev", "check", "cart")
	asked := open(t, client, "approval", "dev", "cart")
	equal(t, "state", states(t, d, "").States[0].State, models.SequenceWaitingForApprovalState)
	pass(t, client, asked)
	until(t, "end", func() bool {
		found := states(t, d, "?keptnContext="+keptnContext)
		return len(found.States) == 1 && found.States[0].State == models.SequenceFinished
	})
}

func TestAProblemIsTold(t *testing.T) {
	client := start(t).client(t)
	event, err := keptnv2.KeptnEvent("sh.keptn.event.dev.nothing.triggered", "test", data("dev", "cart")).Build()
	must(t, err)
	_, problem := client.API().SendEvent(background, event, api.APISendEventOptions{})
	if problem == nil || problem.GetMessage() == "" {
		t.Fatalf("that there is no such sequence is told as %+v", problem)
	}
	equal(t, "code", problem.Code, int64(http.StatusNotFound))
	event, err = keptnv2.KeptnEvent("sh.keptn.event.deploy.started", "test", data("dev", "cart")).Build()
	must(t, err)
	_, problem = client.API().SendEvent(background, event, api.APISendEventOptions{})
	if problem == nil {
		t.Fatal("what answers nothing is taken")
	}
	equal(t, "code", problem.Code, int64(http.StatusBadRequest))
}

func TestTheStateOfASequenceHasItsEvaluation(t *testing.T) {
	d := start(t)
	client := d.client(t)
	trigger(t, client, "dev", "evaluation", "cart")
	asked := open(t, client, "evaluation", "dev", "cart")
	started, err := keptnv2.CreateStartedEvent("test", asked, nil)
	must(t, err)
	send(t, client, *started)
	finished, err := keptnv2.CreateFinishedEvent("test", asked, map[string]any{
		"project": project, "stage": "dev", "service": "cart", "status": "succeeded", "result": "warning",
		"evaluation": map[string]any{"score": 75.5, "result": "warning"},
	})
	must(t, err)
	send(t, client, *finished)
	until(t, "end", func() bool { return len(states(t, d, "?state="+models.SequenceFinished).States) == 1 })
	found := states(t, d, "").States[0].Stages[0].LatestEvaluation
	if found == nil {
		t.Fatal("there is none")
	}
	equal(t, "evaluation", *found, models.SequenceStateEvaluation{Result: "warning", Score: 75.5})
}

func TestTheClientIsKnown(t *testing.T) {
	d := start(t)
	client := d.client(t)
	if _, problem := client.Auth().Authenticate(background, api.AuthAuthenticateOptions{}); problem != nil {
		t.Errorf("authentication: %q", problem.GetMessage())
	}
	if metadata, problem := client.API().GetMetadata(background, api.APIGetMetadataOptions{}); problem != nil {
		t.Errorf("metadata: %q", problem.GetMessage())
	} else if metadata.Automaticprovisioning == nil {
		t.Error("metadata do not say whether repositories are provisioned")
	}
	stranger, err := api.New(d.endpoint(), api.WithAuthToken("guess"))
	must(t, err)
	if _, problem := stranger.Auth().Authenticate(background, api.AuthAuthenticateOptions{}); problem == nil || problem.GetMessage() == "" {
		t.Errorf("a wrong token is told as %+v", problem)
	}
}

func TestProjectsStagesAndServicesAreRead(t *testing.T) {
	client := start(t).client(t)
	trigger(t, client, "dev", "delivery", "cart")
	open(t, client, "deploy", "dev", "cart")
	projects, err := client.Projects().GetAllProjects(background, api.ProjectsGetAllProjectsOptions{})
	if err != nil {
		t.Errorf("projects: %v", err)
	} else if len(projects) != 1 || projects[0].ProjectName != project {
		t.Errorf("projects: %+v", projects)
	}
	found, problem := client.Projects().GetProject(background, models.Project{ProjectName: project}, api.ProjectsGetProjectOptions{})
	if problem != nil {
		t.Errorf("the project: %q", problem.GetMessage())
	} else {
		equal(t, "stages of the project", len(found.Stages), 2)
	}
	stages, err := client.Stages().GetAllStages(background, project, api.StagesGetAllStagesOptions{})
	if err != nil {
		t.Errorf("stages: %v", err)
	} else if len(stages) != 2 || stages[0].StageName != "dev" || stages[1].StageName != "production" {
		t.Errorf("stages: %+v", stages)
	}
	services, err := client.Services().GetAllServices(background, project, "dev", api.ServicesGetAllServicesOptions{})
	if err != nil {
		t.Errorf("services: %v", err)
	} else if len(services) != 1 || services[0].ServiceName != "cart" {
		t.Errorf("services: %+v", services)
	}
	service, err := client.Services().GetService(background, project, "dev", "cart", api.ServicesGetServiceOptions{})
	if err != nil {
		t.Errorf("the service: %v", err)
	} else {
		equal(t, "service", service.ServiceName, "cart")
	}
	name, text := "web", ""
	_, problem = client.API().CreateProject(background, models.CreateProject{Name: &name, Shipyard: &text}, api.APICreateProjectOptions{})
	if problem == nil || problem.GetMessage() == "" {
		t.Errorf("that projects come from Git is told as %+v", problem)
	}
	_, problem = client.Projects().GetProject(background, models.Project{ProjectName: "nothing"}, api.ProjectsGetProjectOptions{})
	if problem == nil || problem.GetMessage() == "" {
		t.Errorf("that there is no such project is told as %+v", problem)
	}
}

func TestAnEvaluationIsTriggered(t *testing.T) {
	client := start(t).client(t)
	evaluation := models.Evaluation{Timeframe: "5m", Labels: map[string]string{"build": "17"}}
	answer, problem := client.API().TriggerEvaluation(background, project, "dev", "cart", evaluation, api.APITriggerEvaluationOptions{})
	if problem != nil {
		t.Fatalf("it is refused: %q", problem.GetMessage())
	}
	asked := open(t, client, "evaluation", "dev", "cart")
	equal(t, "context", asked.Shkeptncontext, *answer.KeptnContext)
	var told struct{ Evaluation struct{ Timeframe string } }
	must(t, asked.DataAs(&told))
	equal(t, "timeframe", told.Evaluation.Timeframe, "5m")
}
