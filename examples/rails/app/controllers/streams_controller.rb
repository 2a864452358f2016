# frozen_string_literal: true

# A page that is sent while it is made: a row every quarter of a second.
class StreamsController < ApplicationController
  include ActionController::Live

  PAUSE = 0.25

  def show
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    head, tail = render_to_string(:show).split("<!-- rows -->")
    response.stream.write(head)
    Reading.latest.limit(12).each do |reading|
      response.stream.write(render_to_string(partial: "readings/row", locals: { reading: reading }, formats: [:html]))
      sleep PAUSE
    end
    response.stream.write(tail)
  rescue ActionController::Live::ClientDisconnected
    logger.info "the reader left the stream"
  ensure
    response.stream.close
  end
end
