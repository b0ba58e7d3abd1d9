// Writes the SDK of a Pulumi package: pulumi-sdk-generator LANGUAGE SCHEMA FOLDER [-local] [-loader ADDRESS].
//
// The generators are those of the Pulumi CLI's own module, which the published language hosts call.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	gocodegen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const tool = "pulumi-sdk-generator"

func main() {
	local := flag.Bool("local", false, "for one program, as `pulumi package add` does it")
	address := flag.String("loader", "", "the engine's server of other packages' schemas")
	flag.Parse()
	if flag.NArg() != 3 {
		fail(fmt.Errorf("usage: %s [-local] [-loader ADDRESS] LANGUAGE SCHEMA FOLDER", tool))
	}
	files, err := generate(flag.Arg(0), flag.Arg(1), *address, *local)
	if err == nil {
		err = write(flag.Arg(2), files)
	}
	if err != nil {
		fail(err)
	}
}

func generate(language, file, address string, local bool) (map[string][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("%s is no schema: %w", file, err)
	}
	var loader schema.ReferenceLoader = schema.NewCachedLoader(nil)
	if address != "" {
		if loader, err = schema.NewLoaderClient(address); err != nil {
			return nil, err
		}
	}
	pkg, diagnostics, err := schema.BindSpec(spec, loader, schema.ValidationOptions{AllowDanglingReferences: true})
	if err != nil {
		return nil, err
	}
	if diagnostics.HasErrors() {
		return nil, diagnostics
	}
	// As the published hosts have it.
	if local {
		pkg.SupportPack = true
	}
	switch language {
	case "nodejs":
		return nodejs.GeneratePackage(tool, pkg, nil, nil, local, loader)
	case "python":
		return python.GeneratePackage(tool, pkg, nil, loader)
	case "go":
		return gocodegen.GeneratePackage(tool, pkg, nil)
	}
	return nil, fmt.Errorf("there is no generator for %q: nodejs, python and go have one", language)
}

func write(folder string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
