// Limits on the work of rendering an answer. Text beyond a limit is shown unformatted, never cut.

// Containers (quotes, lists) within each other; markers further in are plain text.
export const NESTING_MAX = 16;
// Emphasis and links within each other.
export const INLINE_NESTING_MAX = 24;
// Characters of a paragraph, heading or cell that are read for emphasis and links as one piece. The rules of marked take time that
// grows faster than the length, so longer text is read piece by piece.
export const PIECE_MAX = 4_000;
// Characters that the inline rules may look at for one piece: each step looks at what is left of it. Dense markdown needs 1.5 million.
export const PIECE_WORK_MAX = 3_000_000;
// Characters by which a growing answer may grow in one frame; at 300 tokens/s some 20 come.
export const STEP_MAX = 2_000;
// Characters of a heading that is underlined. Its rule is tried at every line, and looks that far.
export const SETEXT_MAX = 500;
// Items of a list, or rows of a table, that are read again with each update while it grows: the last ones.
export const OPEN_PARTS = 3;
// Characters of one formula, and of what it may grow to by its macros.
export const MATHS_MAX = 4_000;
export const MATHS_EXPANSIONS_MAX = 500;
export const MATHS_NODES_MAX = 4_000;
// Characters of a code block that are coloured when it is whole, and while it grows.
export const HIGHLIGHT_MAX = 40_000;
export const HIGHLIGHT_GROWING_MAX = 2_000;
// Lines of code that are one element, so that a growing block lays out its last lines only.
export const CODE_CHUNK_LINES = 64;
// Chunks of a whole code block that get their colours in one frame, each some hundred elements.
export const COLOURED_PER_FRAME = 2;
// Blocks of an answer that are one element, for the same reason.
export const GROUP_BLOCKS = 32;
// Columns of a table; one with more stays text. Rows that are one table, since each row that is added lays out the whole table again;
// the rows after them are another one with the same head.
export const TABLE_COLUMNS_MAX = 64;
export const TABLE_ROWS = 100;
// Characters of a link's address.
export const HREF_MAX = 2_048;
