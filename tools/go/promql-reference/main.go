// Evaluates PromQL queries over given series with Prometheus's own engine: promql-reference < QUESTIONS > ANSWERS.
//
// QUESTIONS is {"series": [{"labels": {}, "samples": [[MILLISECONDS, "VALUE", START]]}], "queries": [{"query": "",
// "start": MILLISECONDS, "end": MILLISECONDS, "step": MILLISECONDS or 0 for one moment}]}. An answer is
// {"type": "", "series": [[LABELS, [[MILLISECONDS, "VALUE"]]]]} or {"error": ""}, one for each query.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type questions struct {
	Series []struct {
		Labels  map[string]string
		Samples [][3]any
	}
	Queries []struct {
		Query            string
		Start, End, Step int64
	}
}

type answer struct {
	Type   string `json:"type,omitempty"`
	Series []any  `json:"series,omitempty"`
	Error  string `json:"error,omitempty"`
}

// number is a sample of a float with the time since which a counter counts.
type number struct {
	time, start int64
	value       float64
}

func (n number) T() int64                    { return n.time }
func (n number) ST() int64                   { return n.start }
func (n number) F() float64                  { return n.value }
func (number) H() *histogram.Histogram       { return nil }
func (number) FH() *histogram.FloatHistogram { return nil }
func (number) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (n number) Copy() chunks.Sample         { return n }

type list struct {
	series []*storage.SeriesEntry
	next   int
}

func (l *list) Next() bool                      { l.next++; return l.next <= len(l.series) }
func (l *list) At() storage.Series              { return l.series[l.next-1] }
func (*list) Err() error                        { return nil }
func (*list) Warnings() annotations.Annotations { return nil }

func main() {
	var asked questions
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, "promql-reference: no questions:", err)
		os.Exit(1)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples:               50_000_000,
		Timeout:                  time.Minute,
		LookbackDelta:            5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		EnableNegativeOffset:     true,
		UseStartTimestamps:       true,
		Parser:                   parser.NewParser(parser.Options{}),
	})
	stored := storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		return &storage.MockQuerier{SelectMockFunction: asked.selected}, nil
	})
	answers := []answer{}
	for _, query := range asked.Queries {
		start, end := time.UnixMilli(query.Start).UTC(), time.UnixMilli(query.End).UTC()
		var prepared promql.Query
		var err error
		if query.Step == 0 {
			prepared, err = engine.NewInstantQuery(context.Background(), stored, nil, query.Query, end)
		} else {
			step := time.Duration(query.Step) * time.Millisecond
			prepared, err = engine.NewRangeQuery(context.Background(), stored, nil, query.Query, start, end, step)
		}
		if err != nil {
			answers = append(answers, answer{Error: err.Error()})
			continue
		}
		answers = append(answers, shown(prepared.Exec(context.Background())))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
}

func (q questions) selected(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &list{}
	for _, series := range q.Series {
		set, fits := labels.FromMap(series.Labels), true
		for _, matcher := range matchers {
			fits = fits && matcher.Matches(set.Get(matcher.Name))
		}
		if !fits {
			continue
		}
		samples := []chunks.Sample{}
		for _, sample := range series.Samples {
			value, err := strconv.ParseFloat(sample[1].(string), 64)
			if err != nil {
				panic(err)
			}
			samples = append(samples, number{int64(sample[0].(float64)), int64(sample[2].(float64)), value})
		}
		found.series = append(found.series, storage.NewListSeries(set, samples))
	}
	sort.Slice(found.series, func(i, j int) bool {
		return labels.Compare(found.series[i].Labels(), found.series[j].Labels()) < 0
	})
	return found
}

func shown(result *promql.Result) answer {
	if result.Err != nil {
		return answer{Error: result.Err.Error()}
	}
	series := []any{}
	switch value := result.Value.(type) {
	case promql.Scalar:
		series = append(series, []any{map[string]string{}, [][2]any{{value.T, text(value.V)}}})
	case promql.Vector:
		for _, one := range value {
			series = append(series, []any{one.Metric.Map(), [][2]any{{one.T, text(one.F)}}})
		}
	case promql.Matrix:
		for _, one := range value {
			points := [][2]any{}
			for _, point := range one.Floats {
				points = append(points, [2]any{point.T, text(point.F)})
			}
			series = append(series, []any{one.Metric.Map(), points})
		}
	case promql.String:
		series = append(series, []any{map[string]string{}, [][2]any{{value.T, value.V}}})
	}
	return answer{Type: string(result.Value.Type()), Series: series}
}

func text(value float64) string {
	switch {
	case math.IsInf(value, 1):
		return "inf"
	case math.IsInf(value, -1):
		return "-inf"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}
