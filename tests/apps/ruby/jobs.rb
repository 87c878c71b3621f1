# Owns: the jobs that Sidekiq's workers run, and how they find the server. Does not own: what is checked.

require "redis"
require "sidekiq"

# How this version calls its client is not what is tested.
Redis.silence_deprecations = true

URL = "redis://127.0.0.1:#{ENV.fetch("WEFT_PORT")}".freeze

Sidekiq.configure_client { |config| config.redis = { url: URL } }
Sidekiq.configure_server do |config|
  config.redis = { url: URL, size: 40 }
  # Scheduled jobs and retries are looked for this often, and not a quarter of a minute behind the start.
  Sidekiq.options[:poll_interval_average] = 1
end

def redis(&block)
  Sidekiq.redis(&block)
end

class Once
  include Sidekiq::Worker
  sidekiq_options queue: "work"

  def perform(number)
    redis { |connection| connection.hincrby("times", number, 1) }
  end
end

class Later
  include Sidekiq::Worker
  sidekiq_options queue: "work"

  def perform(number, at)
    early = Time.now.to_f < at
    redis { |connection| connection.rpush("later", early ? "early" : number) }
  end
end

class FailsTwice
  include Sidekiq::Worker
  sidekiq_options queue: "work", retry: 3
  sidekiq_retry_in { 0 }

  def perform
    tries = redis { |connection| connection.incr("tries") }
    raise "not yet" if tries < 3

    redis { |connection| connection.set("at last", tries) }
  end
end

class Refuses
  include Sidekiq::Worker
  sidekiq_options queue: "work", retry: 0

  def perform
    raise "no way"
  end
end

class Slow
  include Sidekiq::Worker
  sidekiq_options queue: "work"

  def perform
    redis { |connection| connection.incr("slow") }
    sleep
  end
end
