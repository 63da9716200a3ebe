"""Programs that call hooks as coding agents do: by their own settings, with their own messages."""
