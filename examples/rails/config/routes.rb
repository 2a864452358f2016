# frozen_string_literal: true

Rails.application.routes.draw do
  root "readings#index"
  resources :readings, only: %i[index create]
  get "stream" => "streams#show"
  get "api/pulse" => "pulse#show"
end
