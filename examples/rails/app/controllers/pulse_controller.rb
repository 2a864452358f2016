# frozen_string_literal: true

class PulseController < ActionController::Base
  def show = render(plain: "OK")
end
