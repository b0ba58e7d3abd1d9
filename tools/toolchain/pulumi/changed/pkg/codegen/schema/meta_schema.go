package schema

import (
	"io"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// lazySchema is a schema that is compiled at its first use: a fifth of each start of the CLI, and few commands use it.
type lazySchema struct{ compiled func() *jsonschema.Schema }

// Validate is that of the compiled schema.
func (s lazySchema) Validate(value any) error { return s.compiled().Validate(value) }

// MetaSchema is the schema of packages.
var MetaSchema = lazySchema{sync.OnceValue(func() *jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.LoadURL = func(u string) (io.ReadCloser, error) {
		if u == "blob://pulumi.json" {
			return io.NopCloser(strings.NewReader(metaSchema)), nil
		}
		return jsonschema.LoadURL(u)
	}
	return compiler.MustCompile("blob://pulumi.json")
})}
