# frozen_string_literal: true

require "rails/generators"

module Ringspun
  # What `rails generate` finds.
  module Generators
    # `rails generate ringspun:install`: has the application's jobs enqueued and run by us. Run again, it changes nothing.
    #
    # @since 0.1.0
    class InstallGenerator < ::Rails::Generators::Base
      source_root File.join(__dir__, "templates")
      desc "Has Active Job enqueue by ringspun-jobs: the adapter, config/ringspun-jobs.yml and a program that runs the jobs."

      ADAPTER = "config.active_job.queue_adapter"
      private_constant :ADAPTER

      # An environment may set another one, as the production of a new application does. That of tests stays.
      #
      # @api private
      def adapter
        environments = Dir[File.join(destination_root, "config/environments/{development,production,staging}.rb")]
        files = ["config/application.rb", *environments.map { |path| path.delete_prefix("#{destination_root}/") }]
        set = files.select { |path| text_of(path).match?(/^\s*#{ADAPTER} = /) }
        set.each { |path| gsub_file(path, /^(\s*)#{ADAPTER} = (?!:ringspun\b).*$/, "\\1#{ADAPTER} = :ringspun", verbose: false) }
        environment("#{ADAPTER} = :ringspun") unless set.include?("config/application.rb")
      end

      # @api private
      def settings = template("ringspun-jobs.yml", "config/ringspun-jobs.yml", skip: true)

      # The folder of the settings' file, also in the next clone of the application.
      #
      # @api private
      def folder
        return if Ringspun::Jobs::Storage.kept_to_the_server? || Dir.exist?(File.join(destination_root, "storage"))

        create_file("storage/.keep", "")
      end

      # A new application has a bin/jobs for Solid Queue.
      #
      # @api private
      def program
        @program = ["bin/jobs", "bin/ringspun-jobs"].find { |path| text_of(path).match?(/\A\z|ringspun/) }
        template("jobs", @program, skip: true)
        chmod(@program, 0o755, verbose: false)
      end

      # @api private
      def procfile
        return if text_of("Procfile.dev").empty? || text_of("Procfile.dev").match?(%r{^\w+: #{@program}$})

        append_to_file("Procfile.dev", "#{"\n" unless text_of("Procfile.dev").end_with?("\n")}ringspun: #{@program}\n")
      end

      # @api private
      def next_steps
        say <<~TEXT

          Jobs are enqueued where config/ringspun-jobs.yml says, and #{@program} runs them. Start it beside the web server:

            #{@program} --help

          It runs as many jobs at once as the database pool has connections. To run more, raise the pool in config/database.yml.
        TEXT
      end

      private

      def text_of(path)
        full = File.join(destination_root, path)
        File.file?(full) ? File.read(full) : ""
      end
    end
  end
end
