package diy

import (
	"context"
	"net/url"

	"gocloud.dev/blob"

	"github.com/pulumi/pulumi/pkg/v3/leftout"
)

type missingBucket struct{}

func (missingBucket) OpenBucketURL(_ context.Context, u *url.URL) (*blob.Bucket, error) {
	return nil, leftout.Error("state in " + u.Scheme + "://")
}

// An unknown scheme would be taken for the address of a Pulumi Cloud.
func init() {
	for _, scheme := range []string{"azblob", "postgres", "s3"} {
		blob.DefaultURLMux().RegisterBucket(scheme, missingBucket{})
	}
}
