package aggregate

import (
	"github.com/pandodb/pando/document/internal/mongoerror"
)

func later(name string) error {
	return mongoerror.New(mongoerror.CommandNotSupported, "the stage %s is not supported", name)
}

func (p *parser) bucketAuto(value) (stage, error)   { return nil, later("$bucketAuto") }
func (p *parser) densify(value) (stage, error)      { return nil, later("$densify") }
func (p *parser) graphLookup(value) (stage, error)  { return nil, later("$graphLookup") }
func (p *parser) windowFields(value) (stage, error) { return nil, later("$setWindowFields") }
func (p *parser) fill(value) ([]step, error)        { return nil, later("$fill") }
