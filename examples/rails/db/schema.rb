# frozen_string_literal: true

ActiveRecord::Schema[7.2].define(version: 1) do
  create_table :readings do |t|
    t.string :gauge, null: false
    t.integer :level_cm, null: false
    t.string :note, null: false, default: ""
    t.timestamps
    t.index :created_at
  end
end
