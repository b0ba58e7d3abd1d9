// Calls of Google's Go packages for Secret Manager and Cloud Run over REST; prints a JSON object a line for each call.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"cloud.google.com/go/iam/apiv1/iampb"
	run "cloud.google.com/go/run/apiv2"
	"cloud.google.com/go/run/apiv2/runpb"
	secretmanager "cloud.google.com/go/secretmanager/apiv1"
	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

var (
	parent   = "projects/" + os.Getenv("GOOGLE_CLOUD_PROJECT")
	name     = parent + "/secrets/tried-by-go"
	location = parent + "/locations/us-east4"
	service  = location + "/services/by-go"
)

// report makes a call and prints its outcome.
func report(module, call string, action func() error) {
	outcome, text := "passed", ""
	if err := action(); err != nil {
		outcome, text = "failed", err.Error()
	}
	line := map[string]string{"client": module + " " + version(module), "call": call, "outcome": outcome, "text": text}
	json.NewEncoder(os.Stdout).Encode(line)
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return ""
}

// unlike returns an error unless two values are the same.
func unlike[T comparable](got, wanted T, err error) error {
	if err == nil && got != wanted {
		return fmt.Errorf("got %v in place of %v", got, wanted)
	}
	return err
}

// refused returns an error unless a call was refused with a status.
func refused(status int, err error) error {
	var refusal *apierror.APIError
	if !errors.As(err, &refusal) || refusal.HTTPCode() != status {
		return fmt.Errorf("got %v in place of status %d", err, status)
	}
	return nil
}

// secrets calls Secret Manager at its address here, which has a path.
func secrets(ctx context.Context) {
	const module = "cloud.google.com/go/secretmanager"
	endpoint := strings.TrimSuffix(os.Getenv("GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT"), "/v1/")
	client, err := secretmanager.NewRESTClient(ctx, option.WithEndpoint(endpoint))
	if err != nil {
		panic(err)
	}
	replication := &secretmanagerpb.Replication{
		Replication: &secretmanagerpb.Replication_Automatic_{Automatic: &secretmanagerpb.Replication_Automatic{}},
	}
	body := &secretmanagerpb.Secret{Replication: replication, Labels: map[string]string{"tried": "yes"}}
	create := &secretmanagerpb.CreateSecretRequest{Parent: parent, SecretId: "tried-by-go", Secret: body}
	report(module, "CreateSecret", func() error {
		made, err := client.CreateSecret(ctx, create)
		return unlike(made.GetLabels()["tried"], "yes", err)
	})
	report(module, "CreateSecret again", func() error {
		_, err := client.CreateSecret(ctx, create)
		return refused(409, err)
	})
	payload := &secretmanagerpb.SecretPayload{Data: []byte("pa\u00df")}
	report(module, "AddSecretVersion", func() error {
		made, err := client.AddSecretVersion(ctx, &secretmanagerpb.AddSecretVersionRequest{Parent: name, Payload: payload})
		return unlike(made.GetState(), secretmanagerpb.SecretVersion_ENABLED, err)
	})
	report(module, "AccessSecretVersion", func() error {
		request := &secretmanagerpb.AccessSecretVersionRequest{Name: name + "/versions/latest"}
		got, err := client.AccessSecretVersion(ctx, request)
		return unlike(string(got.GetPayload().GetData()), "pa\u00df", err)
	})
	report(module, "ListSecrets", func() error {
		found, err := client.ListSecrets(ctx, &secretmanagerpb.ListSecretsRequest{Parent: parent, PageSize: 1}).Next()
		return unlike(strings.HasSuffix(found.GetName(), "/tried-by-go"), true, err)
	})
	report(module, "UpdateSecret", func() error {
		mask := &fieldmaskpb.FieldMask{Paths: []string{"labels"}}
		changed := &secretmanagerpb.Secret{Name: name, Labels: map[string]string{"tried": "again"}}
		got, err := client.UpdateSecret(ctx, &secretmanagerpb.UpdateSecretRequest{Secret: changed, UpdateMask: mask})
		return unlike(got.GetLabels()["tried"], "again", err)
	})
	report(module, "SetIamPolicy", func() error {
		policy, err := client.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: name})
		if err != nil {
			return err
		}
		viewer := &iampb.Binding{Role: "roles/secretmanager.viewer", Members: []string{"allAuthenticatedUsers"}}
		policy.Bindings = append(policy.Bindings, viewer)
		got, err := client.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: name, Policy: policy})
		return unlike(len(got.GetBindings()), 1, err)
	})
	report(module, "DeleteSecret", func() error {
		return client.DeleteSecret(ctx, &secretmanagerpb.DeleteSecretRequest{Name: name})
	})
	report(module, "GetSecret of a deleted one", func() error {
		_, err := client.GetSecret(ctx, &secretmanagerpb.GetSecretRequest{Name: name})
		return refused(404, err)
	})
}

// services calls Cloud Run at the address of all APIs.
func services(ctx context.Context) {
	const module = "cloud.google.com/go/run"
	endpoint := strings.TrimSuffix(os.Getenv("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT"), "/run/v2/")
	client, err := run.NewServicesRESTClient(ctx, option.WithEndpoint(endpoint))
	if err != nil {
		panic(err)
	}
	limits := map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
	container := &runpb.Container{Image: os.Getenv("TRIED_IMAGE"), Resources: &runpb.ResourceRequirements{Limits: limits}}
	noRedundancy := true
	template := &runpb.RevisionTemplate{
		Containers:                    []*runpb.Container{container},
		ServiceAccount:                "runtime@" + os.Getenv("GOOGLE_CLOUD_PROJECT") + ".iam.gserviceaccount.com",
		NodeSelector:                  &runpb.NodeSelector{Accelerator: "nvidia-l4"},
		GpuZonalRedundancyDisabled:    &noRedundancy,
		MaxInstanceRequestConcurrency: 4,
		Scaling:                       &runpb.RevisionScaling{MaxInstanceCount: 1},
	}
	report(module, "CreateService", func() error {
		body := &runpb.Service{Template: template, Ingress: runpb.IngressTraffic_INGRESS_TRAFFIC_INTERNAL_ONLY}
		request := &runpb.CreateServiceRequest{Parent: location, ServiceId: "by-go", Service: body}
		operation, err := client.CreateService(ctx, request)
		if err != nil {
			return err
		}
		made, err := operation.Wait(ctx)
		return unlike(made.GetTerminalCondition().GetState(), runpb.Condition_CONDITION_SUCCEEDED, err)
	})
	report(module, "GetService", func() error {
		got, err := client.GetService(ctx, &runpb.GetServiceRequest{Name: service})
		return unlike(got.GetIngress(), runpb.IngressTraffic_INGRESS_TRAFFIC_INTERNAL_ONLY, err)
	})
	report(module, "ListServices", func() error {
		found := client.ListServices(ctx, &runpb.ListServicesRequest{Parent: location, PageSize: 1})
		for {
			one, err := found.Next()
			if errors.Is(err, iterator.Done) {
				return errors.New("it is not listed")
			}
			if err != nil || one.GetName() == service {
				return err
			}
		}
	})
	report(module, "DeleteService", func() error {
		operation, err := client.DeleteService(ctx, &runpb.DeleteServiceRequest{Name: service})
		if err != nil {
			return err
		}
		_, err = operation.Wait(ctx)
		return err
	})
}

func main() {
	secrets(context.Background())
	services(context.Background())
}
