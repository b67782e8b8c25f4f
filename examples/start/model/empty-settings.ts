// Loaded before the providers: one that is set to nothing makes them fail while they are loaded, in their own words.
for (const name of ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"]) {
  if (process.env[name]?.trim() === "") delete process.env[name];
}
