# frozen_string_literal: true

# What a request has set, before and after all others have set theirs.
class StatesController < ApplicationController
  LOCALES = %i[en de fr].freeze
  ZONES = %w[UTC Berlin Tokyo Lima].freeze

  def show
    number = Integer(params[:number])
    role = number.odd? ? :reading : :writing
    I18n.with_locale(LOCALES[number % 3]) do
      Time.use_zone(ZONES[number % 4]) { ActiveRecord::Base.connected_to(role:) { render json: twice(number) } }
    end
  end

  def count = render(plain: Note.count)

  def strands = render(plain: Ringspun.inspect_tree)

  def events
    headers["rack.hijack"] = Ringspun::HTTP::SSE.body(request.env) do |events|
      events.write("#{Note.count} notes", id: events.last_id.to_i + 1)
    end
    head :ok, content_type: "text/event-stream"
  end

  # The connection is the request's own from here to its end.
  def connection
    Note.lease_connection
    render json: Array.new(2) { connection_after_a_wait }
  end

  private

  def twice(number)
    Thread.current[:number] = Current.number = number
    logger.info("before #{number}")
    seen = state
    Crowd.wait
    logger.info("after #{number}")
    [seen, state]
  end

  def state
    [Thread.current[:number], Current.number, I18n.locale, Time.zone.name, ActiveRecord::Base.current_role,
     Note.connection_pool.db_config.name, Note.count]
  end

  def connection_after_a_wait
    Note.count
    Crowd.wait
    Note.lease_connection.object_id
  end
end
