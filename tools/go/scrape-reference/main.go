// Relabels series and reads metrics with Prometheus's own code: scrape-reference < QUESTIONS > ANSWERS.
//
// QUESTIONS is {"relabelings": [{"rules": [RULE], "labels": {}}], "texts": [""]}; a RULE has the fields of
// RunMonitoring's metricRelabeling. ANSWERS is {"relabelings": [LABELS, or null where the series is dropped],
// "texts": [{"error": "", "series": [[LABELS, "VALUE"]], "types": {NAME: TYPE}}]}.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/textparse"
)

type rule struct {
	SourceLabels model.LabelNames `json:"sourceLabels"`
	Separator    string           `json:"separator"`
	Regex        string           `json:"regex"`
	Modulus      uint64           `json:"modulus"`
	TargetLabel  string           `json:"targetLabel"`
	Replacement  string           `json:"replacement"`
	Action       string           `json:"action"`
}

type questions struct {
	Relabelings []struct {
		Rules  []rule            `json:"rules"`
		Labels map[string]string `json:"labels"`
	} `json:"relabelings"`
	Texts []string `json:"texts"`
}

type reading struct {
	Error  string            `json:"error"`
	Series [][2]any          `json:"series"`
	Types  map[string]string `json:"types"`
}

type answers struct {
	Relabelings []map[string]string `json:"relabelings"`
	Texts       []reading           `json:"texts"`
}

func main() {
	var asked questions
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answered := answers{Relabelings: []map[string]string{}, Texts: []reading{}}
	for _, question := range asked.Relabelings {
		answered.Relabelings = append(answered.Relabelings, relabeled(question.Labels, question.Rules))
	}
	for _, text := range asked.Texts {
		answered.Texts = append(answered.Texts, read(text))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answered); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func relabeled(series map[string]string, rules []rule) map[string]string {
	configs := []*relabel.Config{}
	for _, each := range rules {
		config := relabel.DefaultRelabelConfig
		config.NameValidationScheme = model.LegacyValidation
		config.SourceLabels, config.TargetLabel, config.Modulus = each.SourceLabels, each.TargetLabel, each.Modulus
		if each.Separator != "" {
			config.Separator = each.Separator
		}
		if each.Regex != "" {
			config.Regex = relabel.MustNewRegexp(each.Regex)
		}
		if each.Replacement != "" {
			config.Replacement = each.Replacement
		}
		if each.Action != "" {
			config.Action = relabel.Action(each.Action)
		}
		configs = append(configs, &config)
	}
	builder := labels.NewBuilder(labels.FromMap(series))
	if !relabel.ProcessBuilder(builder, configs...) {
		return nil
	}
	return builder.Labels().Map()
}

func read(text string) reading {
	result := reading{Series: [][2]any{}, Types: map[string]string{}}
	parser := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			result.Error = err.Error()
			return result
		}
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			result.Types[string(name)] = string(kind)
		case textparse.EntrySeries:
			_, _, value := parser.Series()
			var series labels.Labels
			parser.Labels(&series)
			result.Series = append(result.Series, [2]any{series.Map(), fmt.Sprint(value)})
		}
	}
}
