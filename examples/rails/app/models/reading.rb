# frozen_string_literal: true

# How high the water stood at one gauge.
class Reading < ApplicationRecord
  GAUGES = ["Head weir", "Mill pond", "Upper sluice", "Tail race"].freeze

  validates :gauge, inclusion: { in: GAUGES }
  validates :level_cm, numericality: { only_integer: true, in: 0..500, message: "must be a whole number from 0 to 500" }
  validates :note, length: { maximum: 80 }

  scope :latest, -> { order(created_at: :desc, id: :desc).limit(50) }
end
