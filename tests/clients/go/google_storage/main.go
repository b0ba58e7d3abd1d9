// Calls of Google's Go package for Cloud Storage; prints a JSON object a line for each call. With STORAGE_EMULATOR_HOST the
// package calls that address without credentials, else the endpoint in TRIED_ENDPOINT with the key file.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"cloud.google.com/go/iam"
	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
)

var (
	project  = os.Getenv("GOOGLE_CLOUD_PROJECT")
	emulated = os.Getenv("STORAGE_EMULATOR_HOST") != ""
	ctx      context.Context // of the call that is being made
	large    = bytes.Repeat([]byte("0123456789"), 70_000)
)

// report makes a call and prints its outcome.
func report(call string, action func() error) {
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	outcome, text := "passed", ""
	if err := action(); err != nil {
		outcome, text = "failed", err.Error()
		if strings.Contains(text, "localcloud does not serve") {
			outcome = "not served"
		}
	}
	client := "cloud.google.com/go/storage " + version()
	if emulated {
		client += " by STORAGE_EMULATOR_HOST"
	}
	line := map[string]string{"client": client, "call": call, "outcome": outcome, "text": text}
	json.NewEncoder(os.Stdout).Encode(line)
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == "cloud.google.com/go/storage" {
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

// write uploads an object, in chunks of a size.
func write(object *storage.ObjectHandle, content []byte, chunk int) error {
	writer := object.NewWriter(ctx)
	writer.ChunkSize = chunk
	if _, err := writer.Write(content); err != nil {
		return err
	}
	return writer.Close()
}

// read downloads a part of an object; a length of -1 is all of the rest.
func read(object *storage.ObjectHandle, offset, length int64) (string, error) {
	reader, err := object.NewRangeReader(ctx, offset, length)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	return string(content), err
}

func names(found *storage.ObjectIterator) (string, error) {
	all := []string{}
	for {
		one, err := found.Next()
		if errors.Is(err, iterator.Done) {
			return strings.Join(all, " "), nil
		}
		if err != nil {
			return "", err
		}
		all = append(all, one.Name+one.Prefix)
	}
}

func buckets(client *storage.Client, shelf *storage.BucketHandle) {
	report("Bucket.Create", func() error {
		return shelf.Create(ctx, project, &storage.BucketAttrs{Location: "us-east4", VersioningEnabled: true})
	})
	report("Bucket.Create again", func() error {
		err := shelf.Create(ctx, project, nil)
		return unlike(err != nil && strings.Contains(err.Error(), "409"), true, nil)
	})
	report("Bucket.Attrs", func() error {
		attrs, err := shelf.Attrs(ctx)
		if err != nil {
			return err
		}
		return unlike(attrs.Location, "US-EAST4", err)
	})
	report("Bucket.Attrs of none", func() error {
		_, err := client.Bucket("by-nobody").Attrs(ctx)
		return unlike(errors.Is(err, storage.ErrBucketNotExist), true, nil)
	})
	report("Bucket.Update", func() error {
		update := storage.BucketAttrsToUpdate{}
		update.SetLabel("tried", "yes")
		attrs, err := shelf.Update(ctx, update)
		if err != nil {
			return err
		}
		return unlike(attrs.Labels["tried"], "yes", err)
	})
	report("Client.Buckets", func() error {
		found := client.Buckets(ctx, project)
		for {
			one, err := found.Next()
			if err != nil || one.Name == shelf.BucketName() {
				return err
			}
		}
	})
	report("Client.ServiceAccount", func() error {
		account, err := client.ServiceAccount(ctx, project)
		return unlike(strings.Contains(account, "gs-project-accounts"), true, err)
	})
	report("IAM.Policy, SetPolicy", func() error {
		policy, err := shelf.IAM().Policy(ctx)
		if err != nil {
			return err
		}
		policy.Add("allAuthenticatedUsers", iam.RoleName("roles/storage.objectViewer"))
		return shelf.IAM().SetPolicy(ctx, policy)
	})
	report("IAM.TestPermissions", func() error {
		held, err := shelf.IAM().TestPermissions(ctx, []string{"storage.objects.get"})
		return unlike(len(held), 1, err)
	})
}

func uploads(shelf *storage.BucketHandle) {
	for call, chunk := range map[string]int{"in one request": 0, "in chunks": 256 * 1024, "in one chunk": 16 << 20} {
		report("Writer "+call, func() error {
			object := shelf.Object("written " + call)
			if err := write(object, large, chunk); err != nil {
				return err
			}
			got, err := read(object, 0, -1)
			return unlike(got, string(large), err)
		})
	}
	report("Writer of whole chunks", func() error {
		object := shelf.Object("whole chunks")
		if err := write(object, large[:512*1024], 256*1024); err != nil {
			return err
		}
		got, err := read(object, 512*1024-4, -1)
		return unlike(len(got), 4, err)
	})
	report("Writer of no bytes", func() error {
		return write(shelf.Object("empty"), nil, 256*1024)
	})
	report("Writer with fields and a checksum", func() error {
		writer := shelf.Object("described").NewWriter(ctx)
		writer.ContentType, writer.Metadata = "text/x-tried", map[string]string{"tried": "yes"}
		writer.PredefinedACL = "private"
		if _, err := writer.Write([]byte("described")); err != nil {
			return err
		}
		if err := writer.Close(); err != nil {
			return err
		}
		return unlike(writer.Attrs().Metadata["tried"]+writer.Attrs().ContentType, "yestext/x-tried", nil)
	})
	report("Writer under a precondition", func() error {
		err := write(shelf.Object("described").If(storage.Conditions{DoesNotExist: true}), []byte("x"), 0)
		return unlike(err != nil && strings.Contains(err.Error(), "412"), true, nil)
	})
	report("Writer with a customer's key", func() error {
		object := shelf.Object("locked").Key(bytes.Repeat([]byte("k"), 32))
		if err := write(object, []byte("secret"), 0); err != nil {
			return err
		}
		got, err := read(object, 0, -1)
		return unlike(got, "secret", err)
	})
}

func objects(shelf *storage.BucketHandle) {
	described := shelf.Object("described")
	report("Object.NewRangeReader", func() error {
		got, err := read(described, 2, 3)
		return unlike(got, "scr", err)
	})
	report("Object.NewRangeReader from the end", func() error {
		got, err := read(described, -3, -1)
		return unlike(got, "bed", err)
	})
	report("Object.NewReader of none", func() error {
		_, err := shelf.Object("none").NewReader(ctx)
		return unlike(errors.Is(err, storage.ErrObjectNotExist), true, nil)
	})
	report("Object.Attrs", func() error {
		attrs, err := described.Attrs(ctx)
		if err != nil {
			return err
		}
		return unlike(attrs.Size, 9, err)
	})
	report("Object.Update", func() error {
		attrs, err := described.Update(ctx, storage.ObjectAttrsToUpdate{CacheControl: "no-store"})
		if err != nil {
			return err
		}
		return unlike(attrs.CacheControl, "no-store", err)
	})
	report("Copier.Run", func() error {
		_, err := shelf.Object("a/copied").CopierFrom(described).Run(ctx)
		return err
	})
	report("Object.Move", func() error {
		_, err := shelf.Object("a/copied").Move(ctx, storage.MoveObjectDestination{Object: "a/moved"})
		return err
	})
	report("Composer.Run", func() error {
		attrs, err := shelf.Object("joined").ComposerFrom(described, shelf.Object("a/moved")).Run(ctx)
		if err != nil {
			return err
		}
		return unlike(attrs.Size, 18, err)
	})
	report("Bucket.Objects with a delimiter", func() error {
		got, err := names(shelf.Objects(ctx, &storage.Query{Delimiter: "/", StartOffset: "a", EndOffset: "e"}))
		return unlike(got, "described a/", err)
	})
	report("Bucket.Objects with a pattern", func() error {
		got, err := names(shelf.Objects(ctx, &storage.Query{MatchGlob: "a/*"}))
		return unlike(got, "a/moved", err)
	})
	report("Object of a generation", func() error {
		attrs, err := described.Attrs(ctx)
		if err != nil {
			return err
		}
		if err := write(described, []byte("new"), 0); err != nil {
			return err
		}
		got, err := read(described.Generation(attrs.Generation), 0, -1)
		return unlike(got, "described", err)
	})
	report("Object.Delete", func() error {
		return shelf.Object("empty").Delete(ctx)
	})
}

// signing calls what needs a key to sign with.
func signing(shelf *storage.BucketHandle) {
	for call, scheme := range map[string]storage.SigningScheme{"4": storage.SigningSchemeV4, "2": storage.SigningSchemeV2} {
		report("Bucket.SignedURL, version "+call, func() error {
			options := &storage.SignedURLOptions{Method: "GET", Scheme: scheme, Expires: time.Now().Add(time.Minute), Insecure: true}
			options.Hostname = strings.Split(strings.TrimPrefix(os.Getenv("TRIED_ENDPOINT"), "http://"), "/")[0]
			url, err := shelf.SignedURL("described", options)
			if err != nil {
				return err
			}
			response, err := http.Get(strings.Replace(url, "https://", "http://", 1))
			if err != nil {
				return err
			}
			defer response.Body.Close()
			return unlike(response.StatusCode, 200, nil)
		})
	}
}

func unserved(client *storage.Client, shelf *storage.BucketHandle) {
	report("ACL.List", func() error {
		_, err := shelf.ACL().List(ctx)
		return err
	})
	report("Bucket.Notifications", func() error {
		_, err := shelf.Notifications(ctx)
		return err
	})
	report("Client.CreateHMACKey", func() error {
		_, err := client.CreateHMACKey(ctx, project, "deployer@"+project+".iam.gserviceaccount.com")
		return err
	})
}

func main() {
	options, name := []option.ClientOption{}, "by-go-emulated"
	if !emulated {
		options, name = append(options, option.WithEndpoint(os.Getenv("TRIED_ENDPOINT")+"/storage/v1/")), "by-go"
	}
	client, err := storage.NewClient(context.Background(), options...)
	if err != nil {
		panic(err)
	}
	shelf := client.Bucket(name)
	buckets(client, shelf)
	uploads(shelf)
	objects(shelf)
	if !emulated {
		signing(shelf)
	}
	unserved(client, shelf)
	report("Bucket.Delete with its objects", func() error {
		found := shelf.Objects(ctx, &storage.Query{Versions: true})
		for {
			one, err := found.Next()
			if errors.Is(err, iterator.Done) {
				return shelf.Delete(ctx)
			}
			if err != nil {
				return err
			}
			if err := shelf.Object(one.Name).Generation(one.Generation).Delete(ctx); err != nil {
				return err
			}
		}
	})
}
