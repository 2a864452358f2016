# frozen_string_literal: true

class ReadingsController < ApplicationController
  def index
    @reading = Reading.new(gauge: Reading::GAUGES.first)
    @readings = Reading.latest.to_a
  end

  def create
    @reading = Reading.new(params.require(:reading).permit(:gauge, :level_cm, :note))
    if @reading.save
      redirect_to root_path, notice: "Written down: #{@reading.gauge}, #{@reading.level_cm} cm.", status: :see_other
    else
      @readings = Reading.latest.to_a
      render :index, status: :unprocessable_entity
    end
  end
end
