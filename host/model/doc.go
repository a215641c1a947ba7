// Package model asks language models: it makes requests of latent calls and of plans to be made,
// sends them to a provider, and checks what comes back.
package model
