# frozen_string_literal: true

# Makes the database when there is none. Several processes may start at once: one makes it, the others
# wait. By hand: ruby db/make.rb
require_relative "../config/environment" if $PROGRAM_NAME == __FILE__

module MakeDatabase
  def self.call
    FileUtils.mkdir_p(Rails.root.join("tmp"))
    File.open(Rails.root.join("tmp/database.lock"), File::RDWR | File::CREAT) do |lock|
      lock.flock(File::LOCK_EX)
      make unless ActiveRecord::Base.connection.table_exists?(:readings)
    end
  ensure
    # What forks afterwards must not share an open database.
    ActiveRecord::Base.connection_handler.clear_all_connections!
  end

  def self.make
    ActiveRecord::Schema.verbose = false
    load Rails.root.join("db/schema.rb")
    Reading.reset_column_information
    load Rails.root.join("db/seeds.rb")
  end
end
