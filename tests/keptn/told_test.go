package keptn

import (
	"testing"

	"github.com/keptn/go-utils/pkg/api/models"
	api "github.com/keptn/go-utils/pkg/api/utils/v2"
)

func TestARegistrationMayBeEmpty(t *testing.T) {
	client := start(t).client(t)
	id, err := client.Uniform().RegisterIntegration(background, models.Integration{Name: "nothing"}, api.UniformRegisterIntegrationOptions{})
	must(t, err)
	_, err = client.Uniform().Ping(background, id, api.UniformPingOptions{})
	must(t, err)
	must(t, client.Uniform().UnregisterIntegration(background, id, api.UniformUnregisterIntegrationOptions{}))
}
