# frozen_string_literal: true

module ApplicationHelper
  # The path of an asset whose name in public/assets holds a digest: "site.css" is site-0123abcd.css there.
  def fingerprinted(name)
    ASSETS.fetch(name)
  end

  ASSETS = Rails.public_path.glob("assets/*").to_h do |file|
    [file.basename.to_s.sub(/-\h{8,}(?=\.)/, ""), "#{ENV["RAILS_RELATIVE_URL_ROOT"]}/assets/#{file.basename}"]
  end.freeze
end
