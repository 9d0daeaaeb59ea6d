# frozen_string_literal: true

class Other < SecondRecord
end
