// Parts of an answer besides its text.

// A call that the model asks for. `arguments` is JSON text that may still grow; `result` is absent until somebody has answered.
export interface ToolCall { id: string; name: string; arguments: string; result?: string }

// One token of an answer with natural logarithms of probabilities, as /v1/chat/completions gives them with `logprobs`.
export interface TokenChoice { token: string; logprob: number }
export interface TokenLogprob extends TokenChoice { top: TokenChoice[] }

// A place in the source text, in UTF-16 units, where a line with a label is drawn.
export interface Seam { at: number; label: string }
