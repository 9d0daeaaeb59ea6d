# frozen_string_literal: true

# A file of SQLite needs a gem and a thread, so it is loaded by programs that want one.
Ringspun::Jobs::Storage.offer(:sqlite, "sqlite:PATH")
Ringspun::Jobs::Storage.by_default_a_file(:sqlite, "jobs.sqlite3")
