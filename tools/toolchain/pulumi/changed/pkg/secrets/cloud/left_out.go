package cloud

import (
	"context"
	"net/url"

	gosecrets "gocloud.dev/secrets"

	"github.com/pulumi/pulumi/pkg/v3/leftout"
)

type missingKeeper struct{}

func (missingKeeper) OpenKeeperURL(_ context.Context, u *url.URL) (*gosecrets.Keeper, error) {
	return nil, leftout.Error("secrets by " + u.Scheme + "://")
}

func init() {
	for _, scheme := range []string{"awskms", "azurekeyvault", "hashivault"} {
		gosecrets.DefaultURLMux().RegisterKeeper(scheme, missingKeeper{})
	}
}
