/** Scenarios of the conformance package that need no special server: the product's own server passes them. */
export const productScenarios: readonly string[] = [
  "server-initialize",
  "ping",
  "tools-list",
  "resources-list",
  "server-sse-multiple-streams",
  "dns-rebinding-protection",
];

/**
 * The other scenarios call tools, resources and prompts with fixed names, or features that Sandpiper does not use. They
 * run against a fixture server that has all of them, behind the same endpoint.
 */
export const fixtureScenarios: Readonly<Record<string, string>> = {
  "tools-call-simple-text": "calls the tool test_simple_text",
  "tools-call-image": "calls the tool test_image_content",
  "tools-call-audio": "calls the tool test_audio_content",
  "tools-call-embedded-resource": "calls the tool test_embedded_resource",
  "tools-call-mixed-content": "calls the tool test_multiple_content_types",
  "tools-call-with-logging": "calls the tool test_tool_with_logging; the product writes logs for its operator alone",
  "tools-call-error": "calls the tool test_error_handling",
  "tools-call-with-progress": "calls the tool test_tool_with_progress",
  "tools-call-sampling": "calls the tool test_sampling; the product asks no model",
  "tools-call-elicitation": "calls the tool test_elicitation; the product asks users nothing",
  "elicitation-sep1034-defaults": "calls the tool test_elicitation_sep1034_defaults",
  "elicitation-sep1330-enums": "calls the tool test_elicitation_sep1330_enums",
  "json-schema-2020-12": "looks for the tool json_schema_2020_12_tool",
  "server-sse-polling": "calls the tool test_reconnection",
  "resources-read-text": "reads the resource test://static-text",
  "resources-read-binary": "reads the resource test://static-binary",
  "resources-templates-read": "reads the resource test://template/123/data",
  "resources-subscribe": "subscribes to test://watched-resource; the product's resources are read, not watched",
  "resources-unsubscribe": "subscribes to test://watched-resource",
  "prompts-list": "lists prompts; the product has none",
  "prompts-get-simple": "gets the prompt test_simple_prompt",
  "prompts-get-with-args": "gets the prompt test_prompt_with_arguments",
  "prompts-get-embedded-resource": "gets the prompt test_prompt_with_embedded_resource",
  "prompts-get-with-image": "gets the prompt test_prompt_with_image",
  "completion-complete": "completes an argument of the prompt test_prompt_with_arguments",
  "logging-set-level": "sets the level of logs, which the product does not send",
};
