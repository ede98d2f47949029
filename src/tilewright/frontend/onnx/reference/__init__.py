"""What has no graph runs by value: nodes one after another, on arrays, texts, lists and maps."""
