# frozen_string_literal: true

Rails.application.config.i18n.available_locales = %i[en de fr]
Rails.application.config.action_cable.disable_request_forgery_protection = true
