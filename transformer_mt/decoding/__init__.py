"""From a trained model to translations: search over a step function, and text in, text out around it."""
