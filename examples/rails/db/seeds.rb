# frozen_string_literal: true

# The same sixty rows every time, an hour apart.
notes = ["", "", "clear", "after rain", "leaves in the grating", "sluice half open", "", "fog over the pond"]
start = Time.current.beginning_of_hour - 60.hours

Reading.transaction do
  60.times do |i|
    Reading.create!(gauge: Reading::GAUGES[i % Reading::GAUGES.size], level_cm: 42 + ((i * 7) % 31) - ((i * 3) % 11),
                    note: notes[i % notes.size], created_at: start + i.hours)
  end
end
