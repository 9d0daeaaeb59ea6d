# frozen_string_literal: true

# Of another database.
class SecondRecord < ApplicationRecord
  self.abstract_class = true
  connects_to database: { writing: :second, reading: :second }
end
