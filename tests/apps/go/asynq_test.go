// Owns: asynq with a server of its own, as an application uses it: tasks, times, retries, tasks that are unique. Does not own:
// the server behind.

package apps

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

// patience is how long what must come is waited for.
const patience = 4 * time.Minute

func address() string { return "127.0.0.1:" + os.Getenv("WEFT_PORT") }

func jobs() int {
	if count, err := strconv.Atoi(os.Getenv("APPS_JOBS")); err == nil {
		return count
	}
	return 500
}

type fixture struct {
	client    *asynq.Client
	inspector *asynq.Inspector
}

// work runs a server of asynq in a database of its own until the test is over.
func work(t *testing.T, database int, handler asynq.HandlerFunc) fixture {
	t.Helper()
	place := asynq.RedisClientOpt{Addr: address(), DB: database}
	server := asynq.NewServer(place, asynq.Config{
		Concurrency:              8,
		Queues:                   map[string]int{"default": 1, "urgent": 9},
		LogLevel:                 asynq.ErrorLevel,
		DelayedTaskCheckInterval: 50 * time.Millisecond,
		TaskCheckInterval:        10 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	if err := server.Start(handler); err != nil {
		t.Fatal(err)
	}
	made := fixture{asynq.NewClient(place), asynq.NewInspector(place)}
	t.Cleanup(func() {
		server.Shutdown()
		made.client.Close()
		made.inspector.Close()
	})
	return made
}

func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
	}
}

func TestAsynqRunsEachTaskOnce(t *testing.T) {
	count := jobs()
	var lock sync.Mutex
	times := make([]int, count)
	var left sync.WaitGroup
	left.Add(count)
	made := work(t, 3, func(_ context.Context, task *asynq.Task) error {
		lock.Lock()
		times[binary.BigEndian.Uint32(task.Payload())]++
		lock.Unlock()
		left.Done()
		return nil
	})
	for at := range count {
		payload := binary.BigEndian.AppendUint32(nil, uint32(at))
		if _, err := made.client.Enqueue(asynq.NewTask("one", payload), asynq.Retention(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	wait(t, "all tasks", done)
	lock.Lock()
	defer lock.Unlock()
	for at, ran := range times {
		if ran != 1 {
			t.Errorf("task %d ran %d times", at, ran)
		}
	}
}

func TestAsynqRetriesAndArchives(t *testing.T) {
	finished := make(chan struct{})
	hopeless := make(chan struct{})
	var tries int
	made := work(t, 4, func(ctx context.Context, task *asynq.Task) error {
		if task.Type() == "hopeless" {
			defer close(hopeless)
			return asynq.SkipRetry
		}
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		close(finished)
		return nil
	})
	if _, err := made.client.Enqueue(asynq.NewTask("good", nil), asynq.MaxRetry(5)); err != nil {
		t.Fatal(err)
	}
	wait(t, "the third try", finished)
	if _, err := made.client.Enqueue(asynq.NewTask("hopeless", nil), asynq.Queue("urgent")); err != nil {
		t.Fatal(err)
	}
	wait(t, "the task without hope", hopeless)
	// It is archived behind its handler: asked for until it is there.
	deadline := time.Now().Add(patience)
	for {
		archived, err := made.inspector.ListArchivedTasks("urgent")
		if err == nil && len(archived) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not archived: %v %v", archived, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAsynqTimesAndUniqueTasks(t *testing.T) {
	ran := make(chan time.Time, 1)
	made := work(t, 5, func(context.Context, *asynq.Task) error {
		ran <- time.Now()
		return nil
	})
	due := time.Now().Add(time.Second)
	task := asynq.NewTask("late", []byte("payload"))
	if _, err := made.client.Enqueue(task, asynq.ProcessAt(due), asynq.Unique(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := made.client.Enqueue(task, asynq.Unique(time.Minute)); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Fatalf("a second task of the same payload: %v", err)
	}
	select {
	case at := <-ran:
		// asynq keeps times in seconds.
		if at.Before(due.Truncate(time.Second)) {
			t.Errorf("ran %s before its time", due.Sub(at))
		}
	case <-time.After(patience):
		t.Fatal("the task with a time has not run")
	}
}
