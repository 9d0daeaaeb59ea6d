# frozen_string_literal: true

Minitest.run
