# frozen_string_literal: true

class FilesController < ApplicationController
  def show = send_file(Rails.root.join("public/robots.txt"), type: "text/plain", disposition: "inline")

  def create
    note = Note.create!(text: "with a file", picture: params.require(:file))
    render json: { path: rails_storage_proxy_path(note.picture), redirect: rails_blob_path(note.picture),
                   bytes: note.picture.byte_size }
  end
end
