"""The search for hyper-parameters: its trials (`study`), their trainings (`trial`) and what it writes (`results`)."""
