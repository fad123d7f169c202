"""One interface (`base`), one file a kind of corpus. Which kinds there are, `config.choices` says."""
