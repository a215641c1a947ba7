package host

import (
	"os"
	"reflect"
	"sync"

	"obelus/engine/plan"
	"obelus/host/model"
)

// modelSet keeps the models of a host, so that limits on requests go on over a reload.
type modelSet struct {
	limits model.Limits

	mu   sync.Mutex
	made map[string]madeModel // by name
}

type madeModel struct {
	config model.Config
	model  plan.Model
}

// get returns the model of a configuration: the one there is, if nothing has changed.
func (s *modelSet) get(c model.Config, host *Config) (plan.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.made[c.Name]; ok && reflect.DeepEqual(known.config, c) {
		return known.model, nil
	}
	made, err := host.newModel(c)
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = map[string]madeModel{}
	}
	s.made[c.Name] = madeModel{c, made}
	return made, nil
}

// newModel makes a model that asks its provider, or what stands before it.
func (c *Config) newModel(of model.Config) (plan.Model, error) {
	client, err := model.NewClient(of, model.Options{
		Env: os.LookupEnv, Warn: func(text string) { c.Log.Warn(text) }, Limits: &c.models.limits,
	})
	if err != nil {
		return nil, err
	}
	var asker model.Asker = client
	if c.Asker != nil {
		asker = c.Asker(of, client)
	}
	if of.Keep {
		asker = model.Keep(asker, client.Scrub)
	}
	return model.New(of, asker), nil
}
