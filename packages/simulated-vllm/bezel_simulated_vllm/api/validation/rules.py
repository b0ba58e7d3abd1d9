"""Functions of the recorded request models, by the names that vLLM gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api.validation import chat, completion, decisions, messages, pooling, responses, shared

if TYPE_CHECKING:
    from collections.abc import Callable

RULES: dict[str, Callable[..., Any]] = {
    "<lambda>": shared.null_is_zero,  # the only one: of `top_logprobs`
    "OpenAIBaseModel.__log_extra_fields__": shared.validate_wrapped,
    "sequence_validator": shared.sequence,
    "validate_thinking_token_budget": shared.thinking_budget,
    "StructuredOutputsParams": shared.one_kind,
    "RepetitionDetectionParams": shared.repetition,
    "GenerativeScoringRequest.check_cache_salt_support": shared.cache_salt,
    "TokenizeChatRequest.check_generation_prompt": shared.generation_prompt,
    "ChatCompletionRequest._materialize_tool_calls_after": chat.tool_calls,
    "ChatCompletionRequest._normalize_messages_before": chat.messages,
    "ChatCompletionRequest.apply_return_mm_kwargs_alias": shared.same,
    "ChatCompletionRequest.check_cache_salt_support": shared.cache_salt,
    "ChatCompletionRequest.check_generation_prompt": shared.generation_prompt,
    "ChatCompletionRequest.check_logprobs": chat.logprobs,
    "ChatCompletionRequest.check_structured_outputs_count": chat.structured_outputs,
    "ChatCompletionRequest.check_system_message_content_type": chat.system_messages,
    "ChatCompletionRequest.check_tool_usage": chat.tools,
    "ChatCompletionRequest.drop_prompt_token_ids_with_media": shared.same,
    "ChatCompletionRequest.validate_response_format": shared.response_format,
    "ChatCompletionRequest.validate_stream_options": shared.stream_options,
    "BatchChatCompletionRequest.check_batch_mode": chat.batch,
    "StructuredDecisionRequest.check_cache_salt_support": shared.cache_salt,
    "DecisionRequest.check_cache_salt_support": shared.cache_salt,
    "DecisionInputMessage.reject_images": decisions.no_images,
    "QuestionBase.validate_name": decisions.name,
    "ChoiceQuestion.validate_choices": decisions.choices,
    "ChatCompletionToolsParam._propagate_defer_loading": shared.same,
    "CompletionRequest.apply_return_mm_kwargs_alias": shared.same,
    "CompletionRequest.check_cache_salt_support": shared.cache_salt,
    "CompletionRequest.check_logprobs": completion.logprobs,
    "CompletionRequest.check_structured_outputs_count": completion.structured_outputs,
    "CompletionRequest.normalize_null_max_tokens": completion.max_tokens,
    "CompletionRequest.validate_prompt_and_prompt_embeds": completion.prompt,
    "CompletionRequest.validate_prompt_list_length": completion.prompts,
    "CompletionRequest.validate_response_format": shared.response_format,
    "CompletionRequest.validate_stream_options": shared.stream_options,
    "ResponsesRequest.apply_return_mm_kwargs_alias": shared.same,
    "ResponsesRequest.check_cache_salt_support": shared.cache_salt,
    "ResponsesRequest.check_custom_tool_format": responses.custom_tools,
    "ResponsesRequest.check_tool_usage": responses.tools,
    "ResponsesRequest.input_item_parsing": responses.items,
    "ResponsesRequest.validate_background": responses.background,
    "ResponsesRequest.validate_prompt": responses.prompt,
    "ResponsesRequest._normalize_prompt_cache_retention": responses.cache_retention,
    "_default_input_image_details": responses.image_details,
    "reject_removed_pooling_parameters": pooling.removed_parameters,
    "TokenEmbeddingRequest.check_removed_parameters": pooling.removed_parameters,
    "PoolingBasicRequestMixin.check_cache_salt_support": shared.cache_salt,
    "ChatRequestOptionsMixin.check_generation_prompt": shared.generation_prompt,
    "EmbeddingChatInputRequest.normalize_input_messages": pooling.conversation,
    "EmbeddingBatchChatInputRequest.normalize_input_messages": pooling.conversations,
    "ScoringRequestMixin._merge_instruction_into_kwargs": shared.same,
    "CohereEmbedContent.validate_content_payload": pooling.cohere_part,
    "CohereEmbedRequest.validate_input_fields": pooling.cohere_inputs,
    "min_length_validator(min_length=1)": pooling.at_least_one,
    "AnthropicContentBlock.validate_tool_change": messages.block,
    "AnthropicCountTokensRequest.validate_model": messages.model,
    "AnthropicCountTokensRequest.validate_system": messages.no_tool_changes,
    "AnthropicMessage.validate_tool_change_role": messages.message,
    "AnthropicMessagesRequest.apply_return_mm_kwargs_alias": shared.same,
    "AnthropicMessagesRequest.validate_max_tokens": messages.max_tokens,
    "AnthropicMessagesRequest.validate_model": messages.model,
    "AnthropicMessagesRequest.validate_system": messages.no_tool_changes,
    "AnthropicMessagesRequest.validate_thinking_budget": messages.thinking,
    "AnthropicTool.validate_input_schema": messages.input_schema,
    "AnthropicToolChoice.validate_name_required_for_tool": messages.tool_choice,
}
# Factories of defaults that are not an empty text.
DEFAULTS: dict[str, Callable[[], Any]] = {"list": list}
