# frozen_string_literal: true

require "postgres_helper"
require "support/certificate"
require "support/free_port"

# A server that lets nobody in without being shown something: by a role for each way, over TCP and a Unix socket, with TLS.
module SecuredPostgres
  PASSWORD = "secret"

  # Everybody's password is the same. Roles that are in no line are refused.
  HBA = <<~HBA
    local     all trusted                             trust
    local     all plain                               password
    hostnossl all clear_only   127.0.0.1/32           trust
    hostssl   all trusted      127.0.0.1/32           trust
    hostssl   all certified    127.0.0.1/32           cert
    host      all plain        127.0.0.1/32           password
    host      all old          127.0.0.1/32           md5
    host      all salted       127.0.0.1/32           scram-sha-256
  HBA

  ROLES = <<~SQL
    CREATE ROLE trusted LOGIN SUPERUSER
    CREATE ROLE clear_only LOGIN
    CREATE ROLE certified LOGIN
    CREATE ROLE plain LOGIN PASSWORD '#{PASSWORD}'
    CREATE ROLE salted LOGIN PASSWORD '#{PASSWORD}'
    CREATE DATABASE "on'; -- the left"
    SET password_encryption = 'md5'
    CREATE ROLE old LOGIN PASSWORD '#{PASSWORD}'
  SQL

  class << self
    def server
      Servers.postgres(:secured, listen_addresses: "127.0.0.1", port:, ssl: "on", **files) do |server, data|
        server.write("server.crt", Certificate.issue(issuer: Certificate.authority).to_pem)
        server.write("server.key", Certificate.key.to_pem)
        server.write("root.crt", Certificate.authority.to_pem)
        server.write("data/pg_hba.conf", HBA)
        Servers.execute(server, data, ROLES)
      end
    end

    def port = @port ||= FreePort.find

    private

    # Relative ones are meant from its data on.
    def files = { ssl_cert_file: "../server.crt", ssl_key_file: "../server.key", ssl_ca_file: "../root.crt" }
  end

  # Before the descriptors are counted.
  def before_setup
    SecuredPostgres.server
    super
  end

  def secured_tcp = { host: "localhost", hostaddr: "127.0.0.1", port: SecuredPostgres.port, dbname: "postgres" }
  def secured_unix = { host: SecuredPostgres.server.folder, port: SecuredPostgres.port, dbname: "postgres" }
end
