# frozen_string_literal: true

# The connection to the database, by a number that the server has given it.
module Session
  def self.id = Note.connection.adapter_name == "PostgreSQL" ? Note.connection.select_value("SELECT pg_backend_pid()") : 0
end
