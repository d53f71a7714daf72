// An executor as Keptn's SDK has one written: nothing in it knows of launchway.
//
// The SDK reads KEPTN_API_ENDPOINT, KEPTN_API_TOKEN and PUBSUB_TOPIC from the environment.
package main

import (
	"log"

	keptnv2 "github.com/keptn/go-utils/pkg/lib/v0_2_0"
	"github.com/keptn/go-utils/pkg/sdk"
)

const task = "deploy"

type deployHandler struct{}

type told struct {
	keptnv2.EventData
	Deploy struct {
		Image string `json:"image"`
		URI   string `json:"uri"`
	} `json:"deploy"`
}

func (deployHandler) Execute(k sdk.IKeptn, event sdk.KeptnEvent) (interface{}, *sdk.Error) {
	data := &told{}
	if err := keptnv2.Decode(event.Data, data); err != nil {
		return nil, &sdk.Error{StatusType: keptnv2.StatusErrored, ResultType: keptnv2.ResultFailed, Message: err.Error(), Err: err}
	}
	data.Deploy.URI = "http://" + data.Service + "." + data.Stage
	if data.Labels["outcome"] == "errored" {
		return nil, &sdk.Error{StatusType: keptnv2.StatusErrored, ResultType: keptnv2.ResultFailed, Message: "no room left"}
	}
	return data, nil
}

func main() {
	err := sdk.NewKeptn("deploy-service", sdk.WithTaskHandler(keptnv2.GetTriggeredEventType(task), deployHandler{})).Start()
	if err != nil {
		log.Fatal(err)
	}
}
