// Package e2e tests sdk/go/resp with clients that others wrote: go-redis, redis-cli and redis-benchmark. It is a module of its own so that
// their dependencies stay out of the SDK's go.sum.
package e2e
