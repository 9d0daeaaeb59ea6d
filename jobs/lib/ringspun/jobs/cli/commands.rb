# frozen_string_literal: true

require_relative "../metrics"
require_relative "selection"
require_relative "commands/command"
require_relative "commands/queues"
require_relative "commands/schedule"
require_relative "commands/web"
require_relative "commands/lists"
require_relative "commands/relocate"
require_relative "commands/changes"
require_relative "commands/transfers"
require_relative "commands/upkeep"
require_relative "top"
