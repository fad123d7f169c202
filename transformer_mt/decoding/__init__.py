"""From a trained model to translations: searches over a step function, and the way from text to text around them."""
