# frozen_string_literal: true

# The client has a storage in memory of its own, as where a schedule makes jobs that are stored elsewhere.
module ClientStorage
  def setup
    super
    Ringspun::Jobs.storage = Ringspun::Jobs::Storage::Memory.new
  end

  def teardown
    Ringspun::Jobs.storage = nil
    super
  end
end
