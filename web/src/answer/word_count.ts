// Counts the words of a text that grows; a text that only grew costs what was added.
export class WordCounter {
  private text = "";
  private words = 0;
  private isInWord = false;

  count(text: string): number {
    if (text.length < this.text.length || !text.startsWith(this.text)) {
      this.words = 0;
      this.isInWord = false;
      this.text = "";
    }
    for (let at = this.text.length; at < text.length; ++at) {
      const isSpace = text.charCodeAt(at) <= 32;
      if (!isSpace && !this.isInWord) this.words += 1;
      this.isInWord = !isSpace;
    }
    this.text = text;
    return this.words;
  }
}
